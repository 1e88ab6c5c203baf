/* Threads of the program that wait for emulated time (core/uverbs/rings.h).
 *
 * On the exact clock emulated time stands while any thread computes. So a thread that finds nothing
 * to do says that it waits, and sleeps until the NICs have something for it. */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "library.h"

enum {
    LOOKS_AT_SIGNAL = 200,
    QUICK_LOOKS = 20,
    NS_BETWEEN_LOOKS = 50000,
    FIRST_WAIT_NS = 1000,
    LONGEST_WAIT_NS = 1000000,
    WAITS_SO_FAR = 8 /* of the time that a thread has asked in vain, about several objects */
};

__thread bool looks_elsewhere = true; /* its first look is not one of many */

static __thread struct uverbs_thread *own;
static __thread struct uverbs_session *session;

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* ---- the thread's place in the session ---------------------------------------------------- */

static void stop_running(struct uverbs_session *of)
{
    __atomic_sub_fetch(&of->running, 1, __ATOMIC_SEQ_CST);
    wake_resting_nics();
}

void wake_resting_nics(void)
{
    if (load(&present_connection()->time->rests))
        wake_nics();
}

static void raise_slots(struct uverbs_session *of, uint32_t to)
{
    uint32_t slots = load(&of->thread_slots);
    while (slots < to && !__atomic_compare_exchange_n(&of->thread_slots, &slots, to, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* The first free place. NULL: a thread without one counts as one that computes nothing. */
static struct uverbs_thread *new_place(struct uverbs_session *of, uint32_t tid)
{
    __atomic_add_fetch(&of->running, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < UVERBS_THREADS; i++) {
        uint32_t nobody = UVERBS_NO_THREAD;
        if (!__atomic_compare_exchange_n(&of->threads[i].state, &nobody, UVERBS_RUNS, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            continue;
        __atomic_store_n(&of->threads[i].tid, tid, __ATOMIC_SEQ_CST);
        raise_slots(of, i + 1);
        return &of->threads[i];
    }
    stop_running(of);
    return NULL;
}

static struct uverbs_thread *present_place(struct uverbs_session *of, uint32_t tid)
{
    for (uint32_t i = 0; i < load(&of->thread_slots) && i < UVERBS_THREADS; i++)
        if (load(&of->threads[i].tid) == tid && load(&of->threads[i].state) != UVERBS_NO_THREAD)
            return &of->threads[i];
    return NULL;
}

void count_thread(uint32_t tid)
{
    const struct connection *nics = present_connection();
    if (!present_place(nics->session, tid))
        new_place(nics->session, tid);
}

/* Another thread may have taken the place for this one. */
static void take_place(struct uverbs_session *of)
{
    uint32_t tid = (uint32_t)gettid();
    struct uverbs_thread *place = present_place(of, tid);
    own = place ? place : new_place(of, tid);
    session = of;
    watch_thread();
    trap_counter();
}

void leave_place(void)
{
    const struct connection *nics = present_connection();
    struct uverbs_thread *place = nics ? present_place(nics->session, (uint32_t)gettid()) : NULL;
    own = NULL;
    session = NULL;
    if (!place)
        return;
    __atomic_store_n(&place->tid, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&place->state, UVERBS_NO_THREAD, __ATOMIC_SEQ_CST);
    stop_running(nics->session);
}

void forget_place(void)
{
    own = NULL;
    session = NULL;
}

/* False: somebody else has ended the wait, or is about to. */
static bool run_again(struct uverbs_thread *thread)
{
    uint32_t waits = UVERBS_WAITS;
    __atomic_add_fetch(&session->running, 1, __ATOMIC_SEQ_CST);
    if (__atomic_compare_exchange_n(&thread->state, &waits, UVERBS_RUNS, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
        return true;
    stop_running(session);
    return false;
}

/* In a signal's handler the thread may wait already. */
void is_active(void)
{
    const struct connection *nics = connection();
    if (!nics)
        return;
    if (!own || session != nics->session)
        take_place(nics->session);
    else if (load(&own->state) == UVERBS_WAITS && run_again(own))
        __atomic_add_fetch(&own->wakes, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&nics->session->activity, 1, __ATOMIC_RELAXED);
}

/* ---- waiting --------------------------------------------------------------------------- */

uint32_t begin_wait(int64_t until_ns, enum uverbs_news news)
{
    is_active();
    if (!own)
        return 0;
    uint32_t wakes = load(&own->wakes);
    __atomic_store_n(&own->until_ns, until_ns, __ATOMIC_RELEASE);
    __atomic_store_n(&own->news, (uint32_t)news, __ATOMIC_RELEASE);
    __atomic_store_n(&own->state, UVERBS_WAITS, __ATOMIC_SEQ_CST);
    stop_running(session);
    return wakes;
}

/* Until somebody wakes this thread. With a time-out, however long, every signal that is handled
 * interrupts the system call. Returns 0 or errno. */
static int sleep_until_woken(uint32_t wakes)
{
    static const struct timespec long_enough = {.tv_sec = 1000000000};
    long ended = REAL(syscall)(SYS_futex, &own->wakes, FUTEX_WAIT, wakes, &long_enough, NULL, 0);
    return ended < 0 ? errno : 0;
}

static void run_on(void *unused)
{
    (void)unused;
    is_active();
}

/* The same; pthread_cancel ends the thread meanwhile. */
static int sleep_cancellably(uint32_t wakes)
{
    int type, error;
    pthread_cleanup_push(run_on, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    error = sleep_until_woken(wakes);
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_pop(0);
    return error;
}

static bool end_wait_by(int (*sleep)(uint32_t wakes), uint32_t wakes)
{
    int error = errno;
    bool interrupted = false;
    while (own && load(&own->wakes) == wakes) {
        if (sleep(wakes) != EINTR)
            continue;
        interrupted = true;
        if (run_again(own))
            break;
    }
    errno = error;
    return interrupted;
}

bool end_wait(uint32_t wakes)
{
    return end_wait_by(sleep_until_woken, wakes);
}

bool end_cancellable_wait(uint32_t wakes)
{
    return end_wait_by(sleep_cancellably, wakes);
}

bool wait_for_news(int64_t until_ns)
{
    return end_wait(begin_wait(until_ns, UVERBS_ANY_NEWS));
}

void wait_after_not_yet(const void *object, uint32_t progress)
{
    static __thread const void *of;
    static __thread uint32_t seen;
    static __thread int64_t since_ns, wait_ns;
    const struct connection *nics = connection();
    bool is_first = looks_elsewhere;
    looks_elsewhere = false;
    if (!nics || !nics->clock.is_exact)
        return;
    int64_t now_ns = emulated_ns();
    if (is_first) {
        since_ns = now_ns;
        return;
    }
    wait_ns = of == object && seen == progress ? 2 * wait_ns : (now_ns - since_ns) / WAITS_SO_FAR;
    wait_ns = wait_ns < FIRST_WAIT_NS ? FIRST_WAIT_NS : wait_ns;
    wait_ns = wait_ns > LONGEST_WAIT_NS ? LONGEST_WAIT_NS : wait_ns;
    of = object, seen = progress;
    wait_for_news(now_ns + wait_ns);
}

int64_t *own_end_of_wait(void)
{
    return own ? &own->until_ns : NULL;
}

void hold_time(void)
{
    __atomic_add_fetch(&present_connection()->session->held, 1, __ATOMIC_SEQ_CST);
}

void release_time(void)
{
    __atomic_sub_fetch(&present_connection()->session->held, 1, __ATOMIC_SEQ_CST);
}

/* ---- signals ------------------------------------------------------------------------------- */

bool is_pending(int number)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

/* All threads that wait run meanwhile, because one of them will handle it. The others are woken
 * only after that: a thread that is woken first would not notice that it was interrupted. */
void send_signal(int number, void (*send)(void *), void *of)
{
    static uint32_t woken[UVERBS_THREADS]; /* one thread at a time sends: that of alarms.c */
    const struct timespec between_looks = {.tv_nsec = NS_BETWEEN_LOOKS};
    uint32_t count = 0;
    for (uint32_t i = 0; i < load(&session->thread_slots) && i < UVERBS_THREADS; i++)
        if (load(&session->threads[i].state) == UVERBS_WAITS && run_again(&session->threads[i]))
            woken[count++] = i;
    hold_time();
    send(of);
    for (int looks = 0; looks < LOOKS_AT_SIGNAL && is_pending(number); looks++)
        REAL(syscall)(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &between_looks, NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct uverbs_thread *thread = &session->threads[woken[i]];
        __atomic_add_fetch(&thread->wakes, 1, __ATOMIC_SEQ_CST);
        REAL(syscall)(SYS_futex, &thread->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    release_time();
}

/* ---- emulated time --------------------------------------------------------------------------- */

/* A thread that only seemed to wait reads the time when it stands again, and then goes on first. */
static void wait_until_time_stands(const struct uverbs_time *time)
{
    const struct timespec between_looks = {.tv_nsec = NS_BETWEEN_LOOKS};
    int error = errno;
    hold_time();
    for (int looks = 0; load(&time->passes); looks++) {
        if (looks < QUICK_LOOKS)
            sched_yield();
        else
            REAL(syscall)(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &between_looks, NULL);
    }
    release_time();
    errno = error;
}

int64_t emulated_ps(void)
{
    const struct connection *nics = connection();
    if (!nics)
        return 0;
    if (nics->clock.is_exact) {
        if (load(&nics->time->passes))
            wait_until_time_stands(nics->time);
        return __atomic_load_n(&nics->time->now_ps, __ATOMIC_SEQ_CST);
    }
    struct timespec now;
    real_clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t passed_ns = now.tv_sec * NS_PER_S + now.tv_nsec - nics->clock.from_ns;
    return (int64_t)((double)passed_ns / nics->clock.slowdown * 1000);
}

int64_t emulated_ns(void)
{
    return emulated_ps() / 1000;
}
