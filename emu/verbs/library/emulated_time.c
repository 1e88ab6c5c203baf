/* On the exact clock a program lives in the fabric's time: clocks, sleeps and the time stamp
 * counter follow it, from the program's first verbs call on. Emulated time stands while the program
 * computes.
 *
 *     clock_gettime, gettimeofday, time      what the clocks showed at emulated time 0, and
 *                                            emulated time
 *     sleep, usleep, nanosleep, ...          end at an emulated time
 *     rdtsc, rdtscp                          trap (traps.c); cycles of /proc/cpuinfo's rate
 *
 * A program that reads a clock again and again waits for it to move, so it moves after a while.
 * Then it stands for a few reads: a program that compares two clocks (perftest: the counter's rate)
 * reads both at one time.
 *
 * Time-outs are in timeouts.c and locks.c, timers in timers.c. Out of reach: programs without libc
 * (static ones, Go), and system calls without syscall() (system_calls.c). */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

enum {
    READS_AT_ONE_TIME = 100, /* of a clock, before it moves */
    READS_AFTER_STEP = 4,    /* before it moves again */
    FIRST_STEP_NS = 100,
    LONGEST_STEP_NS = 100000,
    STEPS_SO_FAR = 8, /* of the time that it has been read again and again */
    VDSO_BYTES = 16384,
};

bool is_emulated(void)
{
    const struct connection *nics = present_connection();
    return nics && nics->clock.is_exact;
}

/* ---- clocks ------------------------------------------------------------------------------- */

static int64_t step_after(int64_t reading_ns)
{
    int64_t step_ns = reading_ns / STEPS_SO_FAR;
    if (step_ns < FIRST_STEP_NS)
        return FIRST_STEP_NS;
    return step_ns < LONGEST_STEP_NS ? step_ns : LONGEST_STEP_NS;
}

/* The emulated time that a clock shows. */
static int64_t read_clock(void)
{
    static __thread int64_t since_ns, last_ns; /* without another call of the library */
    static __thread uint32_t reads, activity;
    const struct connection *nics = present_connection();
    __atomic_add_fetch(&nics->session->clock_reads, 1, __ATOMIC_RELAXED);
    int64_t now_ns = emulated_ns();
    uint32_t calls = __atomic_load_n(&nics->session->activity, __ATOMIC_RELAXED);
    if (now_ns != last_ns || calls != activity) {
        if (calls != activity)
            since_ns = now_ns;
        reads = 0;
    }
    if (++reads > READS_AT_ONE_TIME) {
        wait_for_news(now_ns + step_after(now_ns - since_ns));
        reads = READS_AT_ONE_TIME - READS_AFTER_STEP;
        now_ns = emulated_ns();
    }
    last_ns = now_ns;
    activity = __atomic_load_n(&nics->session->activity, __ATOMIC_RELAXED);
    return now_ns;
}

bool is_followed(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ||
           clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
           clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

int64_t origin_ns(clockid_t clock)
{
    const struct uverbs_clock *own = &present_connection()->clock;
    bool is_of_day =
        clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    return is_of_day ? own->realtime_ns : own->monotonic_ns;
}

int real_clock_gettime(clockid_t clock, struct timespec *now)
{
    return (int)REAL(syscall)(SYS_clock_gettime, clock, now); /* the vDSO's would trap */
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!is_emulated())
        return REAL(clock_gettime)(clock, now);
    if (!is_followed(clock))
        return real_clock_gettime(clock, now);
    *now = as_timespec(origin_ns(clock) + read_clock());
    return 0;
}

EXPORT int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* The processor time of the process is real. */
EXPORT clock_t times(struct tms *used)
{
    struct timespec now;
    clock_t real = REAL(times)(used);
    if (real == (clock_t)-1 || !is_emulated())
        return real;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (clock_t)(as_ns(&now) / (NS_PER_S / sysconf(_SC_CLK_TCK)));
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
    return 0;
}

EXPORT time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

/* ---- sleeps --------------------------------------------------------------------------------- */

/* Times that are too long end never. */
int64_t as_ns(const struct timespec *time)
{
    return time->tv_sec < INT64_MAX / NS_PER_S / 2 ? time->tv_sec * NS_PER_S + time->tv_nsec
                                                   : INT64_MAX / 2;
}

struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

bool is_valid(const struct timespec *time)
{
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < NS_PER_S;
}

/* Returns 0, or EINTR. A cancellation point. */
static int sleep_until(int64_t until_ns)
{
    pthread_testcancel();
    while (emulated_ns() < until_ns)
        if (end_cancellable_wait(begin_wait(until_ns, UVERBS_NO_NEWS)))
            return EINTR;
    return 0;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                           struct timespec *left)
{
    if (!is_emulated() || !is_followed(clock))
        return REAL(clock_nanosleep)(clock, flags, wanted, left);
    if (!is_valid(wanted))
        return EINVAL;
    bool is_absolute = flags & TIMER_ABSTIME;
    int64_t until_ns = as_ns(wanted) + (is_absolute ? -origin_ns(clock) : emulated_ns());
    int error = sleep_until(until_ns);
    if (error && left && !is_absolute) {
        int64_t left_ns = until_ns - emulated_ns();
        *left = as_timespec(left_ns > 0 ? left_ns : 0);
    }
    return error;
}

EXPORT int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, left);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

EXPORT int usleep(useconds_t us)
{
    struct timespec wanted = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
    return nanosleep(&wanted, NULL);
}

EXPORT unsigned sleep(unsigned seconds)
{
    struct timespec wanted = {.tv_sec = seconds}, left = {0};
    return nanosleep(&wanted, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

/* As glibc: -1 for a signal, -2 for a mistake. */
EXPORT int thrd_sleep(const struct timespec *wanted, struct timespec *left)
{
    int error = clock_nanosleep(CLOCK_REALTIME, 0, wanted, left);
    return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

/* ---- the time stamp counter ------------------------------------------------------------------ */

/* The rate that programs find in /proc/cpuinfo. */
static double counter_hz(void)
{
    static double hz;
    char line[256];
    if (hz > 0)
        return hz;
    FILE *cpus = fopen("/proc/cpuinfo", "re");
    double mhz = 0, most = 0;
    while (cpus && fgets(line, sizeof line, cpus))
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1 && mhz > most)
            most = mhz;
    if (cpus)
        fclose(cpus);
    hz = most > 0 ? most * 1e6 : 1e9;
    return hz;
}

void trap_counter(void)
{
#if defined(__x86_64__)
    if (is_emulated()) {
        counter_hz();
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    }
#endif
}

bool release_counter(void)
{
    int trapped = PR_TSC_ENABLE;
#if defined(__x86_64__)
    prctl(PR_GET_TSC, &trapped);
    if (trapped != PR_TSC_ENABLE)
        prctl(PR_SET_TSC, PR_TSC_ENABLE);
#endif
    return trapped != PR_TSC_ENABLE;
}

#if defined(__x86_64__)
/* libc reads the clock by the vDSO, for itself, with the true counter. */
static bool is_in_vdso(const uint8_t *code)
{
    const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR); // NOLINT
    return code >= vdso && code < vdso + VDSO_BYTES;
}

static uint64_t true_counter(void)
{
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    uint64_t count = __builtin_ia32_rdtsc();
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    return count;
}

unsigned counter_instruction_bytes(const uint8_t *code)
{
    static const uint8_t rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};
    if (memcmp(code, rdtsc, sizeof rdtsc) == 0)
        return sizeof rdtsc;
    return memcmp(code, rdtscp, sizeof rdtscp) == 0 ? sizeof rdtscp : 0;
}

uint64_t read_counter(const uint8_t *code)
{
    if (is_in_vdso(code) || !is_emulated())
        return true_counter();
    read_clock();
    return (uint64_t)((double)emulated_ps() * 1e-12 * counter_hz());
}
#endif
