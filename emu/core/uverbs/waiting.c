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
 * emulated time then, if others wait. */
#define _GNU_SOURCE /* syscall */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uverbs/server_state.h"

enum {
    NS_BETWEEN_LOOKS = 50000,
    LONGEST_PATIENCE_NS = 1000000, /* of processor time */
    SHORTEST_PATIENCE_NS = 60000,
    PATH_BYTES = 64,
    STATE_BYTES = 128
};

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static uint32_t thread_slots(const struct uverbs_session *session)
{
    uint32_t slots = load(&session->thread_slots);
    return slots < UVERBS_THREADS ? slots : UVERBS_THREADS;
}

/* ---- the kernel's view ---------------------------------------------------------------- */

/* Whether a thread sleeps until something wakes it. One that was stopped does not. */
static bool sleeps_in_kernel(int task_folder, const char *tid)
{
    char path[PATH_BYTES], text[STATE_BYTES];
    if (snprintf(path, sizeof path, "%s/stat", tid) >= (int)sizeof path)
        return false;
    int fd = openat(task_folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true; /* it has ended */
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return true;
    text[length] = 0;
    const char *end = strrchr(text, ')'); /* of its name */
    return end && end[1] == ' ' && strchr("SIZX", end[2]);
}

static bool waits_in_library(const struct uverbs_session *session, uint32_t tid)
{
    for (uint32_t i = 0; i < thread_slots(session); i++)
        if (load(&session->threads[i].tid) == tid)
            return load(&session->threads[i].state) == UVERBS_WAITS;
    return false;
}

static bool all_threads_wait(const struct uverbs_client *client)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%u/task", client->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return true; /* it has ended */
    bool all = true;
    for (const struct dirent *task; all && (task = readdir(tasks));) {
        uint32_t tid = (uint32_t)strtoul(task->d_name, NULL, 10);
        all = tid == 0 || waits_in_library(client->session, tid) ||
              sleeps_in_kernel(dirfd(tasks), task->d_name);
    }
    closedir(tasks);
    return all;
}

static bool all_wait_in_library(const struct uverbs_server *server)
{
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (load(&client->session->running))
            return false;
    return true;
}

/* ---- threads that read memory again and again -------------------------------------------- */

static int64_t processor_ns(const struct uverbs_client *client)
{
    struct timespec used = {0};
    clock_gettime(client->processor, &used);
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

/* What it does from now on counts. */
static void begin_anew(struct uverbs_client *client)
{
    client->activity = load(&client->session->activity);
    client->writes = nic_writes(client->nic);
    client->since_ns = processor_ns(client);
    client->spins = false;
}

void uverbs_begin_waiting(struct uverbs_client *client)
{
    if (clock_getcpuclockid((pid_t)client->pid, &client->processor) != 0)
        client->processor = CLOCK_MONOTONIC;
    client->patience_ns = LONGEST_PATIENCE_NS;
    begin_anew(client);
}

static bool spins(struct uverbs_client *client)
{
    if (client->activity != load(&client->session->activity))
        begin_anew(client);
    if (client->spins || processor_ns(client) - client->since_ns < client->patience_ns)
        return client->spins;
    if (client->patience_ns > SHORTEST_PATIENCE_NS)
        client->patience_ns /= 2;
    client->spins = true;
    nic_watch_writes(client->nic, client->server->event);
    return true;
}

bool uverbs_seems_to_wait(const struct uverbs_server *server)
{
    for (const struct uverbs_client *client = server->clients; client; client = client->next)
        if (client->spins)
            return true;
    return false;
}

/* ---- all programs -------------------------------------------------------------------------- */

static bool all_wait(const struct uverbs_server *server)
{
    for (struct uverbs_client *client = server->clients; client; client = client->next)
        if (load(&client->session->running) && !all_threads_wait(client) && !spins(client))
            return false;
    return true;
}

bool uverbs_settle(struct uverbs_server *server, int poll_fd)
{
    const struct timespec between_looks = {.tv_nsec = NS_BETWEEN_LOOKS};
    struct pollfd polled = {.fd = poll_fd, .events = POLLIN};
    while (!all_wait_in_library(server)) {
        if (ppoll(&polled, 1, &between_looks, NULL) > 0)
            return false;
        if (all_wait(server))
            return true;
    }
    return true;
}

/* ---- the library's view ------------------------------------------------------------------ */

picoseconds uverbs_earliest_end(const struct uverbs_server *server)
{
    int64_t earliest = INT64_MAX;
    for (const struct uverbs_client *client = server->clients; client; client = client->next) {
        const struct uverbs_session *session = client->session;
        for (uint32_t i = 0; i < thread_slots(session); i++) {
            const struct uverbs_thread *thread = &session->threads[i];
            if (load(&thread->state) != UVERBS_WAITS)
                continue;
            int64_t until = __atomic_load_n(&thread->until_ns, __ATOMIC_ACQUIRE);
            earliest = until < earliest ? until : earliest;
        }
    }
    return earliest >= INT64_MAX / PS_PER_NS ? INT64_MAX : earliest * PS_PER_NS;
}

static void end_wait(struct uverbs_session *session, struct uverbs_thread *thread)
{
    __atomic_store_n(&thread->state, UVERBS_RUNS, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&session->running, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&thread->wakes, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &thread->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void end_waits(struct uverbs_client *client, int64_t now_ns)
{
    struct uverbs_session *session = client->session;
    for (uint32_t i = 0; i < thread_slots(session); i++) {
        struct uverbs_thread *thread = &session->threads[i];
        if (load(&thread->state) == UVERBS_WAITS &&
            (client->has_news || __atomic_load_n(&thread->until_ns, __ATOMIC_ACQUIRE) <= now_ns))
            end_wait(session, thread);
    }
    if (client->has_news || (client->spins && client->writes != nic_writes(client->nic)))
        begin_anew(client);
    client->has_news = false;
}

void uverbs_set_time(struct uverbs_server *server, picoseconds now)
{
    int64_t now_ns = now / PS_PER_NS;
    __atomic_store_n(&server->time->now_ns, now_ns, __ATOMIC_RELEASE);
    for (struct uverbs_client *client = server->clients; client; client = client->next)
        end_waits(client, now_ns);
}
