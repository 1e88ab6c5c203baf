/* What libc's calls do apart from taking time: results, errno, cancellation, handlers of signals.
 * Prints a line for each, which is the same in real time and, with `verbs`, in emulated time. */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { LONG_S = 100000, KEPT = 99, ROUNDS = 200, NS_PER_US = 1000 };

static volatile int handled;
static int cleaned;
static const struct timespec long_time = {.tv_sec = LONG_S}, short_time = {.tv_nsec = 1000000};

static void tell(const char *name, long result)
{
    printf("%s %ld %d\n", name, result, result < 0 ? errno : 0);
    fflush(stdout);
}

static long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / NS_PER_US;
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void *by_sleep(void *unused)
{
    sleep(LONG_S);
    return unused;
}

static void *by_usleep(void *unused)
{
    for (;;)
        usleep(1000);
    return unused;
}

static void *by_nanosleep(void *unused)
{
    nanosleep(&long_time, NULL);
    return unused;
}

static void *by_clock_nanosleep(void *unused)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL);
    return unused;
}

static void *by_thrd_sleep(void *unused)
{
    thrd_sleep(&long_time, NULL);
    return unused;
}

static void *by_poll(void *unused)
{
    poll(NULL, 0, LONG_S);
    return unused;
}

static void *already_cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    usleep(0);
    return unused;
}

static void clean(void *unused)
{
    (void)unused;
    usleep(1000);
    cleaned++;
}

static void *with_cleanup(void *unused)
{
    pthread_cleanup_push(clean, NULL);
    sleep(LONG_S);
    pthread_cleanup_pop(0);
    return unused;
}

static long is_cancelled(void *(*routine)(void *))
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, routine, NULL);
    usleep(2000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED;
}

static void show_cancellation(void)
{
    tell("cancel-sleep", is_cancelled(by_sleep));
    tell("cancel-usleep", is_cancelled(by_usleep));
    tell("cancel-nanosleep", is_cancelled(by_nanosleep));
    tell("cancel-clock_nanosleep", is_cancelled(by_clock_nanosleep));
    tell("cancel-thrd_sleep", is_cancelled(by_thrd_sleep));
    tell("cancel-poll", is_cancelled(by_poll));
    tell("cancelled-before", is_cancelled(already_cancelled));
    tell("cancel-cleanup", is_cancelled(with_cleanup) + cleaned);
    long cancelled = 0;
    for (int i = 0; i < ROUNDS; i++)
        cancelled += is_cancelled(by_usleep);
    tell("cancel-often", cancelled);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void wait_in_handler(int number)
{
    (void)number;
    usleep(1000);
    handled++;
}

static void ignore(int number)
{
    (void)number;
}

static void *idle(void *unused)
{
    usleep(1000);
    return unused;
}

/* A signal that is pending already reaches a thread as it begins. */
static long handled_at_the_start(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t number, none;
    sigemptyset(&none);
    sigemptyset(&number);
    sigaddset(&number, SIGUSR1);
    signal(SIGUSR1, wait_in_handler);
    pthread_sigmask(SIG_BLOCK, &number, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setsigmask_np(&attr, &none);
    for (int i = 0; i < ROUNDS; i++) {
        kill(getpid(), SIGUSR1);
        pthread_create(&thread, &attr, idle, NULL);
        pthread_join(thread, NULL);
    }
    sigset_t of_attr;
    int is_kept = pthread_attr_getsigmask_np(&attr, &of_attr) == 0 && sigisemptyset(&of_attr);
    pthread_sigmask(SIG_UNBLOCK, &number, NULL);
    return is_kept ? handled : -handled;
}

static long left_of_sleep(unsigned seconds)
{
    const struct itimerval soon = {.it_value.tv_usec = 20000};
    signal(SIGALRM, ignore);
    setitimer(ITIMER_REAL, &soon, NULL);
    return sleep(seconds);
}

/* Of a timer that expires five times while its signal is blocked. */
static long has_overruns(void)
{
    struct itimerspec every = {{.tv_nsec = 10000000}, {.tv_nsec = 10000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    sigset_t number;
    siginfo_t info;
    timer_t timer;
    sigemptyset(&number);
    sigaddset(&number, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &number, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
    usleep(55000);
    sigwaitinfo(&number, &info);
    int overruns = timer_getoverrun(timer);
    timer_delete(timer);
    return overruns >= 4 && info.si_code == SI_TIMER;
}

static void show_signals(void)
{
    tell("handled-at-the-start", handled_at_the_start());
    tell("left-of-sleep", left_of_sleep(5));
    tell("left-of-the-longest-sleep", left_of_sleep(UINT_MAX));
    tell("has-overruns", has_overruns());
}

/* ---- errno and arguments -----------------------------------------------------------------------
 */

#define KEEPS(call)                                                                                \
    do {                                                                                           \
        errno = KEPT;                                                                              \
        call;                                                                                      \
        tell("errno of " #call, errno);                                                            \
    } while (0)

static void show_errno(void)
{
    struct timespec now;
    struct timeval tv;
    struct tms used;
    KEEPS(clock_gettime(CLOCK_REALTIME, &now));
    KEEPS(gettimeofday(&tv, NULL));
    KEEPS(time(NULL));
    KEEPS(times(&used));
    KEEPS(usleep(1));
    KEEPS(sleep(0));
    KEEPS(nanosleep(&short_time, NULL));
    KEEPS(clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL));
    KEEPS(thrd_sleep(&short_time, NULL));
    KEEPS(poll(NULL, 0, 1));
    KEEPS(alarm(0));
    KEEPS(for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &now));
}

static void show_arguments(void)
{
    struct timeval many_us = {.tv_usec = 1050000};
    struct timespec wrong = {.tv_nsec = -1};
    struct pollfd *volatile nowhere = (struct pollfd *)8;
    long from_us = now_us();
    tell("select", select(0, NULL, NULL, NULL, &many_us));
    tell("select-long", now_us() - from_us >= 1050000);
    tell("poll-nowhere", poll(nowhere, 1, 10));
    tell("ppoll-nowhere", ppoll(nowhere, 1, &short_time, NULL));
    tell("nanosleep-wrong", nanosleep(&wrong, NULL));
    tell("sleep-of-a-thread", clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &short_time, NULL));
    tell("sleep-of-nothing", clock_nanosleep(77, 0, &short_time, NULL));
}

/* ---- verbs -------------------------------------------------------------------------------------
 */

#define KEEPS_QUIETLY(call)                                                                        \
    do {                                                                                           \
        errno = KEPT;                                                                              \
        call;                                                                                      \
        if (errno != KEPT)                                                                         \
            fprintf(stderr, "errno of " #call ": %d\n", errno);                                    \
    } while (0)

static void use_verbs(struct ibv_context *context)
{
    static char memory[4096];
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_wc wc;
    struct ibv_mr *mr;
    for (int i = 0; i < ROUNDS; i++) {
        KEEPS_QUIETLY(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
        KEEPS_QUIETLY(ibv_req_notify_cq(cq, 0));
        KEEPS_QUIETLY(ibv_poll_cq(cq, 1, &wc));
        KEEPS_QUIETLY(ibv_dereg_mr(mr));
    }
}

int main(int words, char **word)
{
    if (words > 1 && strcmp(word[1], "verbs") == 0) {
        struct ibv_device **devices = ibv_get_device_list(NULL);
        struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
        if (!context)
            return 1;
        use_verbs(context);
    }
    show_cancellation();
    show_signals();
    show_errno();
    show_arguments();
    return 0;
}
