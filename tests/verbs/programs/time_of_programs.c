/* Waits in many ways, and prints for each: its name, the result, errno of a failure, and how long
 * it took by CLOCK_MONOTONIC in nanoseconds. With `busy-child`, it waits for a child alone; with
 * `sleeps`, it prints the time after each of three sleeps; with `computes`, it computes and waits
 * in turn without end. */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define S (1000 * MS)

#define TELL(name, expression)                                                                     \
    do {                                                                                           \
        int64_t from_ns = now_ns(CLOCK_MONOTONIC);                                                 \
        long result = (long)(expression);                                                          \
        int error = result < 0 ? errno : 0;                                                        \
        printf("%s %ld %d %ld\n", name, result, error, (long)(now_ns(CLOCK_MONOTONIC) - from_ns)); \
        fflush(stdout);                                                                            \
    } while (0)

static volatile int rings;
static const void *notified;

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * S + now.tv_nsec;
}

static struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){ns / S, ns % S};
}

static struct timespec at(clockid_t clock, int64_t in_ns)
{
    return as_timespec(now_ns(clock) + in_ns);
}

static void count_ring(int number)
{
    (void)number;
    rings++;
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void wait_for_descriptors(void)
{
    struct timespec two = as_timespec(2 * S);
    struct timeval tv = {3, 500000};
    struct epoll_event event = {.events = EPOLLIN};
    int ends[2], epoll = epoll_create1(0);
    fd_set set;
    if (pipe(ends) != 0)
        exit(1);
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    TELL("poll", poll(NULL, 0, 2500));
    TELL("poll-at-once", poll(NULL, 0, 0));
    TELL("ppoll", ppoll(NULL, 0, &two, NULL));
    TELL("select", select(0, NULL, NULL, NULL, &tv));
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    TELL("pselect", pselect(ends[0] + 1, &set, NULL, NULL, &two, NULL));
    TELL("epoll_wait", epoll_wait(epoll, &event, 1, 1200));
    TELL("epoll_pwait2", epoll_pwait2(epoll, &event, 1, &two, NULL));
    if (write(ends[1], "", 1) != 1)
        exit(1);
    FD_SET(ends[0], &set);
    tv = (struct timeval){1, 0};
    TELL("select-ready", select(ends[0] + 1, &set, NULL, NULL, &tv));
    TELL("epoll-ready", epoll_wait(epoll, &event, 1, 1200));
}

/* ---- locks --------------------------------------------------------------------------------- */

static void *post_late(void *semaphore)
{
    usleep(300000);
    sem_post(semaphore);
    return NULL;
}

static void wait_for_locks(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t by_day = PTHREAD_COND_INITIALIZER, steady;
    pthread_condattr_t attr;
    pthread_t thread;
    sem_t semaphore;
    struct timespec end;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&steady, &attr);
    sem_init(&semaphore, 0, 0);
    end = at(CLOCK_REALTIME, S);
    TELL("sem_timedwait", sem_timedwait(&semaphore, &end));
    pthread_create(&thread, NULL, post_late, &semaphore);
    end = at(CLOCK_REALTIME, S);
    TELL("sem_timedwait-posted", sem_timedwait(&semaphore, &end));
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
    end = at(CLOCK_REALTIME, S);
    TELL("cond_timedwait", pthread_cond_timedwait(&by_day, &mutex, &end));
    end = at(CLOCK_MONOTONIC, 500 * MS);
    TELL("cond_timedwait-monotonic", pthread_cond_timedwait(&steady, &mutex, &end));
    TELL("cond_timedwait-past", pthread_cond_timedwait(&steady, &mutex, &end));
    end = at(CLOCK_MONOTONIC, 500 * MS);
    TELL("cond_clockwait", pthread_cond_clockwait(&by_day, &mutex, CLOCK_MONOTONIC, &end));
    end = at(CLOCK_REALTIME, S);
    TELL("mutex_timedlock", pthread_mutex_timedlock(&mutex, &end));
}

/* ---- timers -------------------------------------------------------------------------------- */

static void notify(union sigval value)
{
    notified = value.sival_ptr;
}

static int ring_four_times(void)
{
    const struct itimerval every = {.it_value.tv_usec = 100000, .it_interval.tv_usec = 250000};
    const struct itimerval never = {0};
    rings = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    while (rings < 4)
        pause();
    return setitimer(ITIMER_REAL, &never, NULL);
}

static void wait_for_signals(void)
{
    const struct sigaction action = {.sa_handler = count_ring};
    struct timespec two = as_timespec(2 * S);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    alarm(2);
    TELL("alarm-pause", pause());
    ualarm(300000, 0);
    TELL("ualarm", pause());
    alarm(1);
    TELL("alarm-nanosleep", nanosleep(&two, NULL));
    alarm(1);
    TELL("alarm-sleep", sleep(4));
    alarm(1);
    TELL("alarm-poll", poll(NULL, 0, 5000));
    TELL("setitimer", ring_four_times());
}

static long ticks_of_a_sleep(void)
{
    struct tms used;
    clock_t from = times(&used);
    sleep(1);
    return (times(&used) - from) * 100 / sysconf(_SC_CLK_TCK);
}

static void wait_for_timers(void)
{
    struct itimerspec once = {.it_value = {1, 0}};
    struct itimerspec often = {.it_value = {0, 200 * MS}, .it_interval = {0, 300 * MS}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    uint64_t count = 0;
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &once, NULL);
    TELL("timer-signal", pause());
    timer_delete(timer);
    event = (struct sigevent){.sigev_notify = SIGEV_THREAD,
                              .sigev_notify_function = notify,
                              .sigev_value.sival_ptr = &event};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &once, NULL);
    sleep(2);
    TELL("timer-thread", notified == &event);
    timer_delete(timer);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(fd, 0, &often, NULL);
    TELL("timerfd", read(fd, &count, sizeof count) == sizeof count ? (long)count : -1);
    sleep(1);
    TELL("timerfd-missed", read(fd, &count, sizeof count) == sizeof count ? (long)count : -1);
    TELL("timerfd-poll", poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1));
    close(fd);
    TELL("times", ticks_of_a_sleep());
}

/* ---- C11, and system calls ---------------------------------------------------------------- */

static int sleep_two(void *unused)
{
    struct timespec two = as_timespec(2 * S);
    (void)unused;
    thrd_sleep(&two, NULL);
    return 42;
}

static int joined(thrd_t thread)
{
    int result = 0;
    thrd_join(thread, &result);
    return result;
}

static void *change_late(void *word)
{
    usleep(300000);
    __atomic_store_n((int *)word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
    return NULL;
}

static long futex(int *word, int operation, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, 0, timeout, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void wait_by_system_calls(void)
{
    struct timespec one = as_timespec(S), end = at(CLOCK_MONOTONIC, S), now = {0};
    pthread_t thread;
    int word = 0;
    TELL("futex", futex(&word, FUTEX_WAIT_PRIVATE, &one));
    end = at(CLOCK_MONOTONIC, 500 * MS);
    TELL("futex-monotonic", futex(&word, FUTEX_WAIT_BITSET_PRIVATE, &end));
    end = at(CLOCK_REALTIME, 500 * MS);
    TELL("futex-realtime", futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, &end));
    pthread_create(&thread, NULL, change_late, &word);
    TELL("futex-woken", futex(&word, FUTEX_WAIT_PRIVATE, &one));
    pthread_join(thread, NULL);
    TELL("futex-changed", futex(&word, FUTEX_WAIT_PRIVATE, &one));
    TELL("syscall-nanosleep", syscall(SYS_nanosleep, &one, NULL));
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    TELL("syscall-clock", now.tv_sec * S + now.tv_nsec == now_ns(CLOCK_MONOTONIC));
}

static void wait_by_c11(void)
{
    struct timespec one = as_timespec(S), end;
    thrd_t thread;
    mtx_t mutex;
    cnd_t condition;
    mtx_init(&mutex, mtx_timed);
    cnd_init(&condition);
    mtx_lock(&mutex);
    TELL("thrd_sleep", thrd_sleep(&one, NULL));
    end = at(CLOCK_REALTIME, S);
    TELL("mtx_timedlock", mtx_timedlock(&mutex, &end) == thrd_timedout);
    end = at(CLOCK_REALTIME, S);
    TELL("cnd_timedwait", cnd_timedwait(&condition, &mutex, &end) == thrd_timedout);
    thrd_create(&thread, sleep_two, NULL);
    end = at(CLOCK_REALTIME, S);
    TELL("timedjoin", pthread_timedjoin_np(thread, NULL, &end));
    end = at(CLOCK_MONOTONIC, 500 * MS);
    TELL("clockjoin", pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end));
    TELL("thrd_join", joined(thread));
}

/* ---- many threads ---------------------------------------------------------------------------- */

static void *sleep_a_little(void *unused)
{
    usleep(1000);
    return unused;
}

/* The error that ends a series of `count` threads; then `count` is how many have begun. */
static int begin_threads(int *count)
{
    static pthread_t threads[5000];
    pthread_attr_t attr;
    int error = 0, begun = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 16);
    while (begun < *count &&
           (error = pthread_create(&threads[begun], &attr, sleep_a_little, NULL)) == 0)
        begun++;
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
    *count = begun;
    return error;
}

static void wait_for_many(void)
{
    int few = 300, many = 5000;
    TELL("threads-300", begin_threads(&few));
    TELL("threads-5000", begin_threads(&many));
}

/* ---- children ------------------------------------------------------------------------------ */

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int sleep_in_child(void)
{
    pid_t child = fork();
    if (child)
        return WEXITSTATUS(status_of(child));
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    sleep(3);
    _exit(now_ns(CLOCK_MONOTONIC) - from_ns == 3 * S ? 7 : 8);
}

static int run_in_child(pid_t child)
{
    if (child)
        return status_of(child);
    execlp("true", "true", NULL);
    _exit(9);
}

static int read_child(void)
{
    FILE *child = popen("echo yes", "r");
    int first = fgetc(child);
    return pclose(child) == 0 && first == 'y';
}

/* The child computes for a part of a second of the machine's time. */
static int poll_busy_child(void)
{
    FILE *child = popen("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo yes", "r");
    struct pollfd polled = {.fd = fileno(child), .events = POLLIN};
    int ready = poll(&polled, 1, 2000);
    pclose(child);
    return ready;
}

static void wait_for_children(void)
{
    TELL("system", system("date > /dev/null; sleep 0.01"));
    TELL("popen", read_child());
    TELL("fork-sleep", sleep_in_child());
    TELL("fork-exec", run_in_child(fork()));
    TELL("vfork-exec", run_in_child(vfork()));
}

static void sleep_and_tell(void)
{
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    puts("begins");
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        usleep(10000);
        printf("%ld\n", (long)(now_ns(CLOCK_MONOTONIC) - from_ns));
        fflush(stdout);
    }
}

/* For a few milliseconds of the machine's time at most. */
static void compute_and_wait(void)
{
    volatile unsigned number = 1;
    puts("begins");
    fflush(stdout);
    for (;;) {
        number = number * 1103515245 + 12345;
        for (unsigned left = number >> 10; left; left--)
            ;
        usleep(1);
    }
}

int main(int words, char **word)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    if (!devices || !devices[0] || !ibv_open_device(devices[0]))
        return 1;
    if (words > 1 && strcmp(word[1], "busy-child") == 0) {
        TELL("busy-child", poll_busy_child());
        return 0;
    }
    if (words > 1 && strcmp(word[1], "sleeps") == 0) {
        sleep_and_tell();
        return 0;
    }
    if (words > 1 && strcmp(word[1], "computes") == 0)
        compute_and_wait();
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    wait_for_descriptors();
    wait_for_locks();
    wait_for_signals();
    wait_for_timers();
    wait_for_children();
    wait_by_system_calls();
    wait_by_c11();
    wait_for_many();
    TELL("sleep-an-hour", sleep(3600));
    printf("all 0 0 %ld\n", (long)(now_ns(CLOCK_MONOTONIC) - from_ns));
    return 0;
}
