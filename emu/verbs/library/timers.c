/* Timers that expire at emulated times.
 *
 *     alarm, ualarm, setitimer          a signal (of ITIMER_REAL)
 *     timer_create                      a signal, a new thread, or nothing
 *     timerfd_create                    an eventfd, whose count is that of expirations
 *
 * A timer that was made before the program's first verbs call is real. */
#define _GNU_SOURCE /* SIGEV_THREAD_ID */

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "library.h"

enum { TIMERS = 64, TIMER_FDS = 64, NS_PER_US = 1000 };

/* ---- what they have in common ------------------------------------------------------------- */

/* An alarm that is put in again after each interval. */
struct timer {
    struct alarm alarm;
    int64_t interval_ns; /* 0: it expires once */
    bool is_set;
};

/* For ring(). */
static void expire(struct timer *timer)
{
    if (timer->interval_ns)
        put_alarm(&timer->alarm, timer->alarm.at_ns + timer->interval_ns);
    else
        timer->is_set = false;
}

static struct itimerspec left_of(const struct timer *timer)
{
    int64_t left_ns = timer->is_set ? timer->alarm.at_ns - emulated_ns() : 0;
    int64_t least_ns = timer->is_set ? 1 : 0;
    return (struct itimerspec){.it_value = as_timespec(left_ns > least_ns ? left_ns : least_ns),
                               .it_interval = as_timespec(timer->is_set ? timer->interval_ns : 0)};
}

/* `at_ns` 0: it is not set. */
static void set_locked(struct timer *timer, int64_t at_ns, int64_t interval_ns)
{
    clear_alarm_locked(&timer->alarm);
    timer->interval_ns = interval_ns;
    timer->is_set = at_ns != 0;
    if (timer->is_set)
        set_alarm_locked(&timer->alarm, at_ns);
}

static int64_t end_of(const struct itimerspec *wanted, clockid_t clock, bool is_absolute)
{
    int64_t value_ns = as_ns(&wanted->it_value);
    if (value_ns == 0)
        return 0;
    int64_t at_ns = value_ns + (is_absolute ? -origin_ns(clock) : emulated_ns());
    return at_ns > 0 ? at_ns : 1;
}

static bool are_valid(const struct itimerspec *wanted)
{
    return is_valid(&wanted->it_value) && is_valid(&wanted->it_interval);
}

static int set_and_tell(struct timer *timer, clockid_t clock, bool is_absolute,
                        const struct itimerspec *wanted, struct itimerspec *before)
{
    if (!are_valid(wanted)) {
        errno = EINVAL;
        return -1;
    }
    sigset_t mask = lock_alarms();
    if (before)
        *before = left_of(timer);
    set_locked(timer, end_of(wanted, clock, is_absolute), as_ns(&wanted->it_interval));
    unlock_alarms(&mask);
    return 0;
}

/* ---- the process's own timer ---------------------------------------------------------------- */

static void send_sigalrm(void *unused)
{
    (void)unused;
    kill(getpid(), SIGALRM);
}

static void ring_sigalrm(struct alarm *alarm)
{
    expire((struct timer *)alarm);
    send_signal(SIGALRM, send_sigalrm, NULL);
}

static struct timer of_process = {.alarm.ring = ring_sigalrm};

static struct timespec from_timeval(const struct timeval *time)
{
    return (struct timespec){time->tv_sec, time->tv_usec * NS_PER_US};
}

static struct itimerval as_itimerval(const struct itimerspec *precise)
{
    return (struct itimerval){
        .it_value = {precise->it_value.tv_sec,
                     (precise->it_value.tv_nsec + NS_PER_US - 1) / NS_PER_US},
        .it_interval = {precise->it_interval.tv_sec, precise->it_interval.tv_nsec / NS_PER_US}};
}

EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict wanted,
                     struct itimerval *restrict before)
{
    static const struct itimerval none;
    if (which != ITIMER_REAL || !is_emulated())
        return REAL(setitimer)(which, wanted, before);
    wanted = wanted ? wanted : &none;
    struct itimerspec precise = {.it_value = from_timeval(&wanted->it_value),
                                 .it_interval = from_timeval(&wanted->it_interval)};
    struct itimerspec was;
    if (set_and_tell(&of_process, CLOCK_MONOTONIC, false, &precise, &was) != 0)
        return -1;
    if (before)
        *before = as_itimerval(&was);
    return 0;
}

EXPORT int getitimer(__itimer_which_t which, struct itimerval *now)
{
    if (which != ITIMER_REAL || !is_emulated())
        return REAL(getitimer)(which, now);
    sigset_t mask = lock_alarms();
    struct itimerspec left = left_of(&of_process);
    unlock_alarms(&mask);
    *now = as_itimerval(&left);
    return 0;
}

EXPORT unsigned alarm(unsigned seconds)
{
    struct itimerval wanted = {.it_value.tv_sec = seconds}, before = {0};
    if (!is_emulated())
        return REAL(alarm)(seconds);
    setitimer(ITIMER_REAL, &wanted, &before);
    return (unsigned)(before.it_value.tv_sec + (before.it_value.tv_usec > 0));
}

EXPORT useconds_t ualarm(useconds_t us, useconds_t interval_us)
{
    enum { US_PER_S = 1000000 };
    const struct itimerval wanted = {
        .it_value = {us / US_PER_S, us % US_PER_S},
        .it_interval = {interval_us / US_PER_S, interval_us % US_PER_S}};
    struct itimerval before = {0};
    if (setitimer(ITIMER_REAL, &wanted, &before) != 0)
        return (useconds_t)-1;
    return (useconds_t)(before.it_value.tv_sec * US_PER_S + before.it_value.tv_usec);
}

/* ---- timers with a number -------------------------------------------------------------------- */

struct numbered_timer {
    struct timer timer;
    bool is_used;
    clockid_t clock;
    struct sigevent event;
    int overruns; /* since its signal was sent */
};

static struct numbered_timer timers[TIMERS];

static void queue_signal(void *of)
{
    const struct numbered_timer *timer = of;
    const struct sigevent *event = &timer->event;
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = event->sigev_signo;
    info.si_code = SI_TIMER;
    info.si_timerid = (int)(timer - timers);
    info.si_value = event->sigev_value;
    if (event->sigev_notify == SIGEV_THREAD_ID)
        REAL(syscall)
    (SYS_rt_tgsigqueueinfo, getpid(), event->_sigev_un._tid, event->sigev_signo, &info);
    else REAL(syscall)(SYS_rt_sigqueueinfo, getpid(), event->sigev_signo, &info);
}

static void *notify(void *of)
{
    const struct sigevent *event = of;
    event->sigev_notify_function(event->sigev_value);
    return NULL;
}

static void begin_thread(struct numbered_timer *timer)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    create_own_thread(&thread, &attr, notify, &timer->event);
    pthread_attr_destroy(&attr);
}

static bool shares_its_signal(const struct numbered_timer *timer)
{
    for (const struct numbered_timer *other = timers; other < timers + TIMERS; other++)
        if (other != timer && other->is_used &&
            other->event.sigev_signo == timer->event.sigev_signo)
            return true;
    return false;
}

/* A timer has one signal at a time. Whether one that is blocked is this timer's is known if no
 * other timer has the same number. */
static void signal_or_count(struct numbered_timer *timer)
{
    int number = timer->event.sigev_signo;
    if (is_pending(number) && !shares_its_signal(timer)) {
        timer->overruns++;
        return;
    }
    timer->overruns = 0;
    send_signal(number, queue_signal, timer);
}

static void ring_numbered(struct alarm *alarm)
{
    struct numbered_timer *timer = (struct numbered_timer *)alarm;
    expire(&timer->timer);
    if (timer->event.sigev_notify == SIGEV_THREAD)
        begin_thread(timer);
    else if (timer->event.sigev_notify != SIGEV_NONE)
        signal_or_count(timer);
}

/* NULL: a real one. */
static struct numbered_timer *numbered(timer_t id)
{
    uintptr_t at = (uintptr_t)id, from = (uintptr_t)timers;
    return at >= from && at < from + sizeof timers ? (struct numbered_timer *)id : NULL;
}

static struct sigevent event_or_default(const struct sigevent *event, timer_t id)
{
    if (event)
        return *event;
    return (struct sigevent){
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_ptr = id};
}

EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id)
{
    struct numbered_timer *made = NULL;
    if (!is_emulated() || !is_followed(clock))
        return REAL(timer_create)(clock, event, id);
    sigset_t mask = lock_alarms();
    for (int i = 0; i < TIMERS && !made; i++)
        if (!timers[i].is_used)
            made = &timers[i];
    if (made)
        *made = (struct numbered_timer){.timer.alarm.ring = ring_numbered,
                                        .is_used = true,
                                        .clock = clock,
                                        .event = event_or_default(event, made)};
    unlock_alarms(&mask);
    if (!made) {
        errno = EAGAIN;
        return -1;
    }
    *id = made;
    return 0;
}

EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *restrict wanted,
                         struct itimerspec *restrict before)
{
    struct numbered_timer *timer = numbered(id);
    if (!timer)
        return REAL(timer_settime)(id, flags, wanted, before);
    return set_and_tell(&timer->timer, timer->clock, flags & TIMER_ABSTIME, wanted, before);
}

EXPORT int timer_gettime(timer_t id, struct itimerspec *now)
{
    const struct numbered_timer *timer = numbered(id);
    if (!timer)
        return REAL(timer_gettime)(id, now);
    sigset_t mask = lock_alarms();
    *now = left_of(&timer->timer);
    unlock_alarms(&mask);
    return 0;
}

/* Emulated time stands until a signal is handled, so only those are late that are blocked. */
EXPORT int timer_getoverrun(timer_t id)
{
    const struct numbered_timer *timer = numbered(id);
    return timer ? timer->overruns : REAL(timer_getoverrun)(id);
}

EXPORT int timer_delete(timer_t id)
{
    struct numbered_timer *timer = numbered(id);
    if (!timer)
        return REAL(timer_delete)(id);
    sigset_t mask = lock_alarms();
    clear_alarm_locked(&timer->timer.alarm);
    timer->is_used = false;
    unlock_alarms(&mask);
    return 0;
}

/* ---- timers with a descriptor --------------------------------------------------------------- */

/* `own_fd`: a copy for this library, since the program may close its own. */
struct fd_timer {
    struct timer timer;
    int fd, own_fd; /* 0: unused */
    clockid_t clock;
};

static struct fd_timer fd_timers[TIMER_FDS];

static void ring_fd(struct alarm *alarm)
{
    expire((struct timer *)alarm);
    eventfd_write(((struct fd_timer *)alarm)->own_fd, 1);
}

static struct fd_timer *fd_timer_of(int fd)
{
    for (int i = 0; i < TIMER_FDS; i++)
        if (fd_timers[i].own_fd && fd_timers[i].fd == fd)
            return &fd_timers[i];
    return NULL;
}

static void free_fd_timer(struct fd_timer *timer)
{
    clear_alarm_locked(&timer->timer.alarm);
    drop_file(&timer->own_fd);
    timer->own_fd = 0;
}

/* NULL: there are too many. */
static struct fd_timer *new_fd_timer(int fd, clockid_t clock)
{
    for (int i = 0; i < TIMER_FDS; i++) {
        if (fd_timers[i].own_fd)
            continue;
        fd_timers[i] = (struct fd_timer){.timer.alarm.ring = ring_fd,
                                         .fd = fd,
                                         .own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
                                         .clock = clock};
        keep_file(&fd_timers[i].own_fd);
        return &fd_timers[i];
    }
    return NULL;
}

EXPORT int timerfd_create(clockid_t clock, int flags)
{
    if (!is_emulated() || !is_followed(clock))
        return REAL(timerfd_create)(clock, flags);
    int fd = eventfd(0, (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) |
                            (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0));
    if (fd < 0)
        return -1;
    sigset_t mask = lock_alarms();
    const struct fd_timer *made = new_fd_timer(fd, clock);
    unlock_alarms(&mask);
    if (made)
        return fd;
    REAL(close)(fd);
    errno = EMFILE;
    return -1;
}

/* Expirations before count no more. */
static void forget_expirations(const struct fd_timer *timer)
{
    struct pollfd polled = {.fd = timer->own_fd, .events = POLLIN};
    eventfd_t count;
    if (REAL(poll)(&polled, 1, 0) > 0)
        eventfd_read(timer->own_fd, &count);
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *wanted,
                           struct itimerspec *before)
{
    struct fd_timer *timer = fd_timer_of(fd);
    if (!timer)
        return REAL(timerfd_settime)(fd, flags, wanted, before);
    forget_expirations(timer);
    return set_and_tell(&timer->timer, timer->clock, flags & TFD_TIMER_ABSTIME, wanted, before);
}

EXPORT int timerfd_gettime(int fd, struct itimerspec *now)
{
    const struct fd_timer *timer = fd_timer_of(fd);
    if (!timer)
        return REAL(timerfd_gettime)(fd, now);
    sigset_t mask = lock_alarms();
    *now = left_of(&timer->timer);
    unlock_alarms(&mask);
    return 0;
}

void close_timer(int file)
{
    if (!fd_timer_of(file))
        return;
    sigset_t mask = lock_alarms();
    struct fd_timer *timer = fd_timer_of(file);
    if (timer)
        free_fd_timer(timer);
    unlock_alarms(&mask);
}

/* A child has none of its parent's timers. */
void forget_timers(void)
{
    of_process = (struct timer){.alarm.ring = ring_sigalrm};
    memset(timers, 0, sizeof timers);
    memset(fd_timers, 0, sizeof fd_timers);
}
