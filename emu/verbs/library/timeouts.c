/* poll, select and epoll end at emulated times; 0 and no time-out stay what they are.
 *
 *     poll(descriptors, time-out) = ppoll(descriptors and an eventfd that an alarm writes)
 *
 * An epoll descriptor is readable when it has events; then the real call returns them at once. */
#define _GNU_SOURCE /* ppoll */

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include "library.h"

enum { FEW = 64, BITS = 8 * sizeof(fd_mask), NS_PER_MS = 1000000, US_PER_S = 1000000 };

/* ---- the thread's eventfd ------------------------------------------------------------------ */

struct bell {
    struct alarm alarm;
    int fd;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread struct bell own = {.fd = -1};

static void close_bell(void *bell)
{
    drop_file(&((struct bell *)bell)->fd);
}

static void make_key(void)
{
    pthread_key_create(&key, close_bell);
}

static void ring(struct alarm *alarm)
{
    eventfd_write(((struct bell *)alarm)->fd, 1);
}

/* A child does not have its parent's. */
static struct bell *own_bell(void)
{
    static __thread pid_t of;
    if (own.fd >= 0 && of == getpid())
        return &own;
    own = (struct bell){.alarm.ring = ring, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    of = getpid();
    keep_file(&own.fd);
    pthread_once(&once, make_key);
    pthread_setspecific(key, &own);
    return own.fd < 0 ? NULL : &own;
}

/* ---- poll ------------------------------------------------------------------------------------ */

static int real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                      const sigset_t *mask)
{
    sigset_t copy;
    return REAL(ppoll)(fds, count, timeout, without_traps(mask, &copy));
}

/* `fds` has room for one more. Returns as poll does, without that one. */
static int poll_with_bell(struct pollfd *fds, nfds_t count, int64_t until_ns, const sigset_t *mask)
{
    struct bell *bell = own_bell();
    eventfd_t rings;
    int ready, error = errno;
    if (!bell)
        return -1;
    fds[count] = (struct pollfd){.fd = bell->fd, .events = POLLIN};
    eventfd_read(bell->fd, &rings);
    errno = error;
    set_alarm(&bell->alarm, until_ns);
    pthread_cleanup_push(clear_alarm, &bell->alarm);
    ready = real_ppoll(fds, count + 1, NULL, mask);
    pthread_cleanup_pop(1);
    return ready > 0 && fds[count].revents ? ready - 1 : ready;
}

/* The real call looks first, and checks the arguments. */
static int poll_until(struct pollfd *fds, nfds_t count, int64_t until_ns, const sigset_t *mask)
{
    static const struct timespec now;
    struct pollfd few[FEW + 1], *all = few;
    int found = real_ppoll(fds, count, &now, mask);
    if (found)
        return found;
    if (count > FEW && !(all = malloc((count + 1) * sizeof *all)))
        return -1;
    memcpy(all, fds, count * sizeof *fds);
    int ready = poll_with_bell(all, count, until_ns, mask);
    memcpy(fds, all, count * sizeof *fds);
    if (all != few)
        free(all);
    return ready;
}

/* NULL: it has none. */
static bool is_awaited(const struct timespec *timeout)
{
    return is_emulated() && timeout && is_valid(timeout) && (timeout->tv_sec || timeout->tv_nsec);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    if (!is_awaited(timeout))
        return real_ppoll(fds, count, timeout, mask);
    return poll_until(fds, count, emulated_ns() + as_ns(timeout), mask);
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (timeout_ms <= 0 || !is_emulated())
        return REAL(poll)(fds, count, timeout_ms);
    return poll_until(fds, count, emulated_ns() + timeout_ms * (int64_t)NS_PER_MS, NULL);
}

/* What poll and ppoll become with _FORTIFY_SOURCE. */
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes) // NOLINT
{
    if (bytes / sizeof *fds < count)
        abort();
    return poll(fds, count, timeout_ms);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, // NOLINT
                       const sigset_t *mask, size_t bytes)
{
    if (bytes / sizeof *fds < count)
        abort();
    return ppoll(fds, count, timeout, mask);
}

/* ---- epoll ---------------------------------------------------------------------------------- */

static int epoll_until(int epoll, struct epoll_event *events, int most, int64_t until_ns,
                       const sigset_t *mask)
{
    for (;;) {
        int count = REAL(epoll_wait)(epoll, events, most, 0); /* also checks the arguments */
        if (count || emulated_ns() >= until_ns)
            return count;
        struct pollfd polled[2] = {{.fd = epoll, .events = POLLIN}};
        if (poll_with_bell(polled, 1, until_ns, mask) < 0)
            return -1;
    }
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int most,
                        const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t copy;
    if (!is_awaited(timeout))
        return REAL(epoll_pwait2)(epoll, events, most, timeout, without_traps(mask, &copy));
    return epoll_until(epoll, events, most, emulated_ns() + as_ns(timeout), mask);
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms,
                       const sigset_t *mask)
{
    sigset_t copy;
    if (timeout_ms <= 0 || !is_emulated())
        return REAL(epoll_pwait)(epoll, events, most, timeout_ms, without_traps(mask, &copy));
    int64_t until_ns = emulated_ns() + timeout_ms * (int64_t)NS_PER_MS;
    return epoll_until(epoll, events, most, until_ns, mask);
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    return epoll_pwait(epoll, events, most, timeout_ms, NULL);
}

/* ---- select --------------------------------------------------------------------------------- */

static bool has(const fd_set *set, int fd)
{
    return set && (set->fds_bits[fd / (int)BITS] >> (fd % (int)BITS) & 1);
}

static size_t set_bytes(int count)
{
    return ((size_t)count + BITS - 1) / BITS * sizeof(fd_mask);
}

/* Returns how many there are, or -1. */
static int to_poll(int count, fd_set *const sets[3], struct pollfd *fds)
{
    static const short events[] = {POLLIN, POLLOUT, POLLPRI};
    int used = 0;
    for (int fd = 0; fd < count; fd++) {
        struct pollfd one = {.fd = fd};
        for (int i = 0; i < 3; i++)
            one.events |= has(sets[i], fd) ? events[i] : 0;
        if (one.events)
            fds[used++] = one;
    }
    return used;
}

/* What is ready now, or -1. Sets in which nothing is ready stay as they are. */
static int select_now(int count, fd_set *const sets[3])
{
    fd_mask copies[3][FD_SETSIZE / BITS];
    fd_set *look[3];
    struct timespec now = {0};
    for (int i = 0; i < 3; i++) {
        look[i] = sets[i] ? memcpy(copies[i], sets[i], set_bytes(count)) : NULL;
    }
    int ready = REAL(pselect)(count, look[0], look[1], look[2], &now, NULL);
    for (int i = 0; i < 3 && ready > 0; i++)
        if (sets[i])
            memcpy(sets[i], copies[i], set_bytes(count));
    return ready;
}

static int select_until(int count, fd_set *const sets[3], int64_t until_ns, const sigset_t *mask)
{
    struct pollfd fds[FD_SETSIZE + 1];
    for (;;) {
        int ready = select_now(count, sets);
        if (ready)
            return ready;
        if (emulated_ns() >= until_ns)
            break;
        if (poll_with_bell(fds, (nfds_t)to_poll(count, sets, fds), until_ns, mask) < 0)
            return -1;
    }
    for (int i = 0; i < 3; i++)
        if (sets[i])
            memset(sets[i], 0, set_bytes(count));
    return 0;
}

EXPORT int pselect(int count, fd_set *reads, fd_set *writes, fd_set *exceptions,
                   const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t copy;
    if (!is_awaited(timeout) || count < 0 || count > FD_SETSIZE)
        return REAL(pselect)(count, reads, writes, exceptions, timeout, without_traps(mask, &copy));
    fd_set *sets[] = {reads, writes, exceptions};
    return select_until(count, sets, emulated_ns() + as_ns(timeout), mask);
}

/* Linux tells how much of the time-out is left. */
EXPORT int select(int count, fd_set *reads, fd_set *writes, fd_set *exceptions,
                  struct timeval *timeout)
{
    struct timespec precise = {0};
    if (timeout)
        precise = (struct timespec){timeout->tv_sec + timeout->tv_usec / US_PER_S,
                                    timeout->tv_usec % US_PER_S * 1000};
    if (!is_awaited(timeout ? &precise : NULL))
        return REAL(select)(count, reads, writes, exceptions, timeout);
    int64_t until_ns = emulated_ns() + as_ns(&precise);
    int ready = pselect(count, reads, writes, exceptions, &precise, NULL);
    int64_t left_ns = until_ns - emulated_ns();
    precise = as_timespec(left_ns > 0 ? left_ns : 0);
    *timeout = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return ready;
}
