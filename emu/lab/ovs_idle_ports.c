/* Open vSwitch reads only the sockets that have something to read.
 *
 * Each time its main thread wakes, the userspace datapath tries to receive from every port of every
 * switch, and each bridge tries to accept a connection at two sockets. In a lab mostly one to three
 * ports have packets. The thread has just asked poll(2) about all these sockets, so the answer is
 * known:
 *
 *   Open vSwitch ─ poll ───▶ here: the sockets without anything to read are noted ──▶ kernel
 *   Open vSwitch ◀─ EAGAIN ─ here: recvmmsg, readv, accept on one of these
 *   Open vSwitch ─ recvmmsg, readv, accept on another ──────────────────────────────▶ kernel
 *
 * What arrives meanwhile is found by the next poll, which returns at once. These sockets never
 * block, so EAGAIN is an answer that Open vSwitch expects. It reads ports with recvmmsg, and the
 * local ports of bridges, which are tap devices, with readv.
 *
 * This library is loaded before the C library (LD_PRELOAD). Only the main thread's calls change. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define EXPORTED __attribute__((visibility("default")))
#define FILES (1 << 16) /* descriptors from here on are not noted */

static __thread bool is_main_thread; /* also after a fork */
static uint32_t polls;
static uint32_t idle_at[FILES]; /* the last poll that found nothing to read there */

static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);
static ssize_t (*real_readv)(int, const struct iovec *, int);
static int (*real_accept)(int, struct sockaddr *, socklen_t *);

__attribute__((constructor)) static void find_main_thread(void)
{
    is_main_thread = true;
}

/* Called on every use, since constructors of other libraries may run before one of this library. */
static void find_real_functions(void)
{
    if (!real_accept) {
        real_poll = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
        real_recvmmsg = (int (*)(int, struct mmsghdr *, unsigned, int, struct timespec *))dlsym(
            RTLD_NEXT, "recvmmsg");
        real_readv = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "readv");
        real_accept = (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept");
    }
}

static void note_idle(const struct pollfd *files, nfds_t count)
{
    polls++;
    for (nfds_t i = 0; i < count; i++) {
        int fd = files[i].fd;
        if (files[i].events & POLLIN && !files[i].revents && fd >= 0 && fd < FILES)
            idle_at[fd] = polls;
    }
}

static bool is_idle(int fd)
{
    return is_main_thread && fd >= 0 && fd < FILES && polls && idle_at[fd] == polls;
}

EXPORTED int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
    find_real_functions();
    int ready = real_poll(files, count, timeout_ms);
    int error = errno;
    if (is_main_thread)
        note_idle(files, ready < 0 ? 0 : count);
    errno = error;
    return ready;
}

EXPORTED int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                      struct timespec *timeout)
{
    if (flags & MSG_DONTWAIT && is_idle(fd)) {
        errno = EAGAIN;
        return -1;
    }
    find_real_functions();
    return real_recvmmsg(fd, messages, count, flags, timeout);
}

EXPORTED ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (is_idle(fd)) {
        errno = EAGAIN;
        return -1;
    }
    find_real_functions();
    return real_readv(fd, parts, count);
}

EXPORTED int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    if (is_idle(fd)) {
        errno = EAGAIN;
        return -1;
    }
    find_real_functions();
    return real_accept(fd, address, length);
}
