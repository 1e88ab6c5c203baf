/* Threads that wait, and emulated time.
 *
 * Emulated time passes while every thread of every program waits for something: in the library, for
 * a completion or a time; or in the kernel, for a socket, a lock, a child. The library says so of
 * the first kind. The kernel says so of the second kind, in /proc: a thread that something wakes is
 * shown as running from that moment on.
 *
 * A thread may also read its memory again and again until the NIC changes it. Nothing says so, but
 * it uses the processor without calling the library. After a while of that it counts as waiting, up
 * to the next change of memory by the NIC. So does a thread that computes for so long: it costs
 * emulated time then, if others wait. What it does meanwhile takes effect when time next stands.
 * A thread that waits may also call the library in between, and so may one that prepares its work.
 * The former do that for ever; so any counts as waiting that has done it for long.
 *
 * With hosts.cpu, the processor time that a process uses between two waits passes as emulated time
 * before its requests are taken and its waits end. */
#define _GNU_SOURCE /* syscall */

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uverbs/server_state.h"

enum {
    BELL_BYTES = 4096,
    NS_BETWEEN_LOOKS = 50000,
    TURNS_BETWEEN_LOOKS = 64,      /* at requests */
    LONGEST_PATIENCE_NS = 4000000, /* of processor time, which counts more on a busy machine */
    SHORTEST_PATIENCE_NS = 200000,
    LONGEST_PATIENCE_WITH_CALLS_NS = 1000000000,
    MOST_NS_A_LOOK = 50000 /* more is a pause of the machine, or of this thread */
};

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static bool all_wait_in_library(const struct uverbs_server *server)
{
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (load(&client->session->running) || load(&client->session->held))
            return false;
    return true;
}

/* ---- threads that read memory again and again -------------------------------------------- */

static uint32_t activity_of(const struct uverbs_client *client)
{
    return load(&client->session->activity) + load(&client->session->clock_reads);
}

/* What it does from now on counts. */
static void begin_anew(struct uverbs_client *client)
{
    client->activity = activity_of(client);
    uverbs_begin_look(client);
    client->computed_ns = 0;
    client->spins = false;
}

static void count_computing(struct uverbs_client *client)
{
    int64_t used_ns = uverbs_used_since_look(client);
    used_ns = used_ns < MOST_NS_A_LOOK ? used_ns : MOST_NS_A_LOOK;
    client->computed_ns += used_ns;
    client->called_ns += used_ns;
}

void uverbs_begin_waiting(struct uverbs_client *client)
{
    uverbs_find_processor_clock(client);
    client->patience_ns = client->patience_after_write_ns = LONGEST_PATIENCE_NS;
    client->patience_with_calls_ns = LONGEST_PATIENCE_WITH_CALLS_NS;
    client->writes = nic_writes(client->nic);
    client->charged_ns = uverbs_processor_ns(client);
    begin_anew(client);
}

/* A thread that has found its memory changed usually calls the library soon, unless it has waited
 * for another change. One that calls it before any change has not waited for one. */
static void learn(struct uverbs_client *client)
{
    if (client->has_found)
        client->patience_after_write_ns = LONGEST_PATIENCE_NS;
    else if (client->spins)
        client->patience_ns = LONGEST_PATIENCE_NS;
    client->has_found = false;
}

/* Whether it has lasted so long. The next time it takes less. */
static bool is_over(int64_t lasted_ns, int64_t *patience_ns)
{
    if (lasted_ns < *patience_ns)
        return false;
    if (*patience_ns > SHORTEST_PATIENCE_NS)
        *patience_ns /= 2;
    return true;
}

static bool spins(struct uverbs_client *client)
{
    if (!client->spins)
        count_computing(client);
    if (client->activity != activity_of(client)) {
        learn(client);
        begin_anew(client);
    }
    if (client->spins)
        return true;
    int64_t *patience = client->has_found ? &client->patience_after_write_ns : &client->patience_ns;
    if (!is_over(client->computed_ns, patience) &&
        !is_over(client->called_ns, &client->patience_with_calls_ns))
        return false;
    client->has_found = false;
    client->spins = true;
    return true;
}

/* Time is about to pass. One that really waits does not seem to. */
static void forget_calls(struct uverbs_client *client)
{
    client->called_ns = 0;
    if (!client->spins)
        client->patience_with_calls_ns = LONGEST_PATIENCE_WITH_CALLS_NS;
}

bool uverbs_seems_to_wait(const struct uverbs_server *server)
{
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (client->spins)
            return true;
    return false;
}

/* ---- all programs -------------------------------------------------------------------------- */

/* Of all that do not spin. */
static int64_t used_ns(const struct uverbs_server *server)
{
    int64_t used = 0;
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        used += client->spins ? 0 : uverbs_processor_ns(client);
    return used;
}

/* A thread that is looked at early may be woken by one that is looked at late and then waits. That
 * one uses the processor meanwhile. */
static bool all_wait(const struct uverbs_server *server)
{
    int64_t before = used_ns(server);
    for (struct uverbs_client *client = server->clients; client; client = client->next) {
        if (load(&client->session->held)) {
            begin_anew(client); /* the library does something, and calls nothing */
            return false;
        }
        if (load(&client->session->running) && !spins(client) && !uverbs_all_threads_wait(client))
            return false;
    }
    return used_ns(server) == before;
}

/* Programs wake this thread from now on, if it sleeps. */
static void set_resting(struct uverbs_server *server, bool rests)
{
    __atomic_store_n(&server->time->rests, rests, __ATOMIC_SEQ_CST);
}

static bool is_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 0) > 0;
}

/* Takes all that programs have written, without waiting. */
static void empty_bell(const struct uverbs_server *server)
{
    char rings[BELL_BYTES];
    ssize_t taken = read(server->bell_fd, rings, sizeof rings);
    (void)taken;
}

/* Until `poll_fd` is readable (true), a program rings the bell, or some time has passed. */
static bool sleep_between_looks(struct uverbs_server *server, int poll_fd, int64_t within_ns)
{
    struct pollfd polled[] = {{.fd = poll_fd, .events = POLLIN},
                              {.fd = server->bell_fd, .events = POLLIN}};
    set_resting(server, within_ns > 0);
    if (all_wait_in_library(server))
        within_ns = 0;
    ppoll(polled, 2, &(struct timespec){.tv_nsec = within_ns}, NULL);
    set_resting(server, false);
    if (polled[1].revents)
        empty_bell(server);
    return polled[0].revents;
}

/* A thread that waits for the answer to a request waits in the kernel. */
bool uverbs_settle(struct uverbs_server *server, int poll_fd)
{
    if (all_wait_in_library(server) && ++server->settled % TURNS_BETWEEN_LOOKS)
        return true;
    for (int64_t within_ns = 0; !sleep_between_looks(server, poll_fd, within_ns);
         within_ns = NS_BETWEEN_LOOKS)
        if (all_wait_in_library(server) || (all_wait(server) && !is_readable(poll_fd)))
            return true;
    return false;
}

/* ---- computing that costs time --------------------------------------------------------------- */

static void charge(struct uverbs_client *client, picoseconds now)
{
    int64_t used = uverbs_processor_ns(client);
    double passes = (double)(used - client->charged_ns) * client->server->cpu_factor;
    client->charged_ns = used;
    if (client->spins)
        return; /* it has waited */
    picoseconds from = client->busy_until > now ? client->busy_until : now;
    client->busy_until = from + (picoseconds)(passes * PS_PER_NS);
}

void uverbs_set_cpu_factor(struct uverbs_server *server, double factor)
{
    server->cpu_factor = factor;
}

void uverbs_charge(struct uverbs_server *server, picoseconds now)
{
    if (server->cpu_factor <= 0)
        return;
    for (struct uverbs_client *client = server->clients; client; client = client->next)
        charge(client, now);
}

/* ---- the library's view ------------------------------------------------------------------ */

/* When the thread goes on without news. */
static picoseconds end_of_wait(const struct uverbs_thread *thread)
{
    int64_t until_ns = __atomic_load_n(&thread->until_ns, __ATOMIC_ACQUIRE);
    if (until_ns < 0) /* nonsense */
        return 0;
    return until_ns >= INT64_MAX / PS_PER_NS ? INT64_MAX : until_ns * PS_PER_NS;
}

static picoseconds earliest_end(const struct uverbs_client *client)
{
    const struct uverbs_session *session = client->session;
    picoseconds earliest = INT64_MAX;
    for (uint32_t i = 0; i < uverbs_thread_slots(session); i++) {
        if (load(&session->threads[i].state) != UVERBS_WAITS)
            continue;
        picoseconds end = end_of_wait(&session->threads[i]);
        earliest = end < earliest ? end : earliest;
    }
    return earliest;
}

picoseconds uverbs_earliest_end(const struct uverbs_server *server, picoseconds now)
{
    picoseconds earliest = INT64_MAX;
    for (const struct uverbs_client *client = server->clients; client; client = client->next) {
        picoseconds end = client->busy_until > now ? client->busy_until : earliest_end(client);
        earliest = end < earliest ? end : earliest;
    }
    return earliest;
}

static bool waits_for_news(const struct uverbs_client *client)
{
    const struct uverbs_session *session = client->session;
    for (uint32_t i = 0; i < uverbs_thread_slots(session); i++)
        if (load(&session->threads[i].state) == UVERBS_WAITS &&
            load(&session->threads[i].news) == UVERBS_ANY_NEWS)
            return true;
    return false;
}

/* Several clients may have the same NIC. */
void uverbs_let_time_pass(struct uverbs_server *server)
{
    __atomic_store_n(&server->time->passes, 1, __ATOMIC_SEQ_CST);
    for (struct uverbs_client *client = server->clients; client; client = client->next) {
        nic_watch_writes(client->nic, NULL);
        forget_calls(client);
    }
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (client->spins || waits_for_news(client))
            nic_watch_writes(client->nic, server->event);
}

/* A thread may also end its wait itself. */
static void end_wait(struct uverbs_session *session, struct uverbs_thread *thread)
{
    uint32_t waits = UVERBS_WAITS;
    __atomic_add_fetch(&session->running, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&thread->state, &waits, UVERBS_RUNS, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
        __atomic_sub_fetch(&session->running, 1, __ATOMIC_SEQ_CST);
        return;
    }
    __atomic_add_fetch(&thread->wakes, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &thread->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Returns whether there was one. */
static bool end_due_waits(const struct uverbs_client *client, bool has_news, picoseconds now)
{
    struct uverbs_session *session = client->session;
    bool any = false;
    for (uint32_t i = 0; i < uverbs_thread_slots(session); i++) {
        struct uverbs_thread *thread = &session->threads[i];
        if (load(&thread->state) != UVERBS_WAITS ||
            !((has_news && load(&thread->news) == UVERBS_ANY_NEWS) || end_of_wait(thread) <= now))
            continue;
        end_wait(session, thread);
        any = true;
    }
    return any;
}

static void end_waits(struct uverbs_client *client, picoseconds now)
{
    uint64_t writes = nic_writes(client->nic);
    bool wrote = client->writes != writes;
    if (now < client->busy_until)
        return;
    if (end_due_waits(client, client->has_news || wrote, now) || (client->spins && wrote)) {
        client->has_found = client->spins && wrote;
        begin_anew(client);
    }
    client->has_news = false;
    client->writes = writes;
}

static bool has_new_work(const struct uverbs_server *server)
{
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (load(&client->session->rings) != client->rings_taken)
            return true;
    return false;
}

bool uverbs_rest(struct uverbs_server *server)
{
    set_resting(server, true);
    return !has_new_work(server);
}

void uverbs_end_rest(struct uverbs_server *server)
{
    set_resting(server, false);
    empty_bell(server);
}

void uverbs_set_time(struct uverbs_server *server, picoseconds now)
{
    __atomic_store_n(&server->time->now_ps, now, __ATOMIC_SEQ_CST);
    __atomic_store_n(&server->time->passes, 0, __ATOMIC_SEQ_CST);
    for (struct uverbs_client *client = server->clients; client; client = client->next)
        end_waits(client, now);
}
