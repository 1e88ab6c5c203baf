/* Timeouts for programs that send requests to ibsim. For programs that use real NICs, the kernel's
 * MAD layer does the same.
 *
 * With each request a program says how long to wait for the answer and how often to retry. It then
 * gets either the answer or ETIMEDOUT (rdma/ib_user_mad.h; the kernel's
 * Documentation/infiniband/user_mad.rst). umad2sim connects such programs to ibsim, but has no
 * timeouts. Answers do get lost: OpenSM does not answer SMInfo until it has found its own port, and
 * a manager that is cut off or killed leaves requests unanswered. The sweep of another OpenSM would
 * then wait for ever.
 *
 *   OpenSM ─ write ─▶ stored here ─────────▶ umad2sim ─▶ ibsim
 *   OpenSM ◀─ poll ── here: overdue requests are sent again
 *   OpenSM ◀─ read ── from umad2sim, or from here: ETIMEDOUT after the last retry
 *
 * This library is loaded before umad2sim (LD_PRELOAD). A duplicate answer is passed on: programs
 * discard answers that they do not wait for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define FIRST_UMAD 1024 /* umad2sim's file descriptors of umad devices … */
#define END_OF_UMADS 2048
#define MS_BETWEEN_CHECKS 20

/* The common MAD header, IBTA vol. 1, 13.4.2. */
struct mad {
    uint8_t base_version, class, class_version, method;
    uint16_t status, class_specific;
    uint32_t tid_high; /* changed on the way by umad2sim and ibsim */
    uint32_t tid;
};
#define RESPONSE 0x80

struct request {
    struct request *next;
    int fd;
    int64_t due_ms;
    uint32_t retries_left;
    size_t size;
    struct ib_user_mad umad[]; /* one element */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *requests; /* requests without an answer */

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_read)(int, void *, size_t);
static int (*real_poll)(struct pollfd *, nfds_t, int);

/* Called on every use, since constructors of other libraries may run before one of this library. */
static void find_real_functions(void)
{
    if (!real_poll) {
        real_write = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
        real_read = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
        real_poll = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    }
}

static bool is_umad(int fd)
{
    return FIRST_UMAD <= fd && fd < END_OF_UMADS;
}

static const struct mad *mad_of(const struct ib_user_mad *umad)
{
    return (const struct mad *)umad->data;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Stores a request. False when its program waits for no answer, or memory is short. */
static bool store_request(int fd, const struct ib_user_mad *umad, size_t size)
{
    if (size < sizeof *umad + sizeof(struct mad) || !umad->hdr.timeout_ms)
        return false;
    struct request *request = malloc(sizeof *request + size);
    if (!request)
        return false;
    request->fd = fd;
    request->due_ms = now_ms() + umad->hdr.timeout_ms;
    request->retries_left = umad->hdr.retries;
    request->size = size;
    memcpy(request->umad, umad, size);
    pthread_mutex_lock(&lock);
    request->next = requests;
    requests = request;
    pthread_mutex_unlock(&lock);
    return true;
}

/* Removes the request that has this answer, by transaction ID. */
static void remove_request(const struct mad *answer)
{
    pthread_mutex_lock(&lock);
    for (struct request **at = &requests; *at; at = &(*at)->next) {
        const struct mad *asked = mad_of((*at)->umad);
        if (asked->tid == answer->tid && asked->class == answer->class) {
            struct request *answered = *at;
            *at = answered->next;
            free(answered);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Sends overdue requests again. Returns whether any has no retries left. */
static bool resend_overdue(int fd)
{
    int64_t now = now_ms();
    bool given_up = false;
    pthread_mutex_lock(&lock);
    for (struct request *request = requests; request; request = request->next) {
        if (request->fd != fd || now < request->due_ms)
            continue;
        if (!request->retries_left) {
            given_up = true;
            continue;
        }
        request->retries_left--;
        request->due_ms = now + request->umad->hdr.timeout_ms;
        real_write(fd, request->umad, request->size);
    }
    pthread_mutex_unlock(&lock);
    return given_up;
}

/* Writes a request without an answer and without retries to `umad`, with ETIMEDOUT. Returns its
 * bytes; 0 when there is none. */
static size_t take_expired(int fd, struct ib_user_mad *umad, size_t size)
{
    int64_t now = now_ms();
    size_t taken = 0;
    pthread_mutex_lock(&lock);
    for (struct request **at = &requests; *at; at = &(*at)->next) {
        struct request *request = *at;
        if (request->fd != fd || now < request->due_ms || request->retries_left)
            continue;
        *at = request->next;
        taken = size < request->size ? size : request->size;
        memcpy(umad, request->umad, taken);
        umad->hdr.status = ETIMEDOUT;
        free(request);
        break;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

EXPORTED ssize_t write(int fd, const void *data, size_t size)
{
    find_real_functions();
    bool stored = is_umad(fd) && store_request(fd, data, size);
    ssize_t written = real_write(fd, data, size);
    if (stored && written < 0)
        remove_request(mad_of(data));
    return written;
}

EXPORTED ssize_t read(int fd, void *data, size_t size)
{
    find_real_functions();
    if (!is_umad(fd))
        return real_read(fd, data, size);
    size_t given_up = take_expired(fd, data, size);
    if (given_up)
        return (ssize_t)given_up;
    ssize_t length = real_read(fd, data, size);
    const struct ib_user_mad *umad = data;
    if (length >= (ssize_t)(sizeof *umad + sizeof(struct mad)) &&
        (umad->hdr.status || mad_of(umad)->method & RESPONSE))
        remove_request(mad_of(umad));
    return length;
}

/* Only polls of a single umad device are handled here: libibumad polls one file at a time. */
EXPORTED int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
    find_real_functions();
    if (count != 1 || !is_umad(files->fd))
        return real_poll(files, count, timeout_ms);
    int64_t end = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
    for (;;) {
        if (resend_overdue(files->fd)) {
            files->revents = POLLIN;
            return 1;
        }
        int64_t left = end - now_ms();
        int wait_ms = left < 0 ? 0 : left < MS_BETWEEN_CHECKS ? (int)left : MS_BETWEEN_CHECKS;
        if (real_poll(files, count, wait_ms) > 0)
            return 1;
        if (now_ms() >= end)
            return 0;
    }
}
