/* The connection of a process to its host's NIC. */
#define _GNU_SOURCE /* memfd_create */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "library.h"

enum { MAX_FILES = 4 };
#define ADDRESS_SPACE (UINT64_C(1) << 47)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static struct connection connected = {.socket = -1};
static bool reconnects; /* a child of a program that was connected */

/* ---- messages on stderr ------------------------------------------------------------------ */

void debug(const char *format, ...)
{
    va_list arguments;
    if (!getenv("EMU_VERBS_DEBUG"))
        return;
    va_start(arguments, format);
    fputs("emu verbs: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

int unsupported(const char *what)
{
    debug("%s is not emulated", what);
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

/* ---- datagrams with files ------------------------------------------------------------------ */

static int send_request(int socket, const struct uverbs_request *request, const int *files,
                        unsigned count)
{
    char control[CMSG_SPACE(MAX_FILES * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)request, .iov_len = sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), files, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

/* The files that came with a message; others are -1. */
static void take_files(struct msghdr *message, int *files, unsigned count)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    for (unsigned i = 0; i < count; i++)
        files[i] = -1;
    if (!files || !header || header->cmsg_type != SCM_RIGHTS)
        return;
    size_t bytes = header->cmsg_len - CMSG_LEN(0);
    if (bytes <= count * sizeof(int))
        memcpy(files, CMSG_DATA(header), bytes);
}

static int receive_reply(int socket, struct uverbs_reply *reply, int *files, unsigned count)
{
    char control[CMSG_SPACE(MAX_FILES * sizeof(int))];
    struct iovec part = {.iov_base = reply, .iov_len = sizeof *reply};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *reply)
        return got < 0 ? errno : EIO;
    take_files(&message, files, count);
    if (reply->error)
        debug("%s", reply->reason);
    bool is_short = message.msg_flags & MSG_CTRUNC; /* this process may have no more files */
    return reply->error ? reply->error : is_short ? EMFILE : 0;
}

/* ---- set-up --------------------------------------------------------------------------------- */

int new_memory(const char *name, uint64_t bytes, void **memory)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        close(fd);
        return -1;
    }
    if (!memory)
        return fd;
    *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*memory == MAP_FAILED) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
        (int)sizeof address.sun_path)
        return -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

enum { OWN_FILES = 4 };

static void list_files(struct connection *of, int *files[OWN_FILES])
{
    int *const all[] = {&of->socket, &of->memory_fd, &of->bell_fd, &of->events_fd};
    memcpy(files, all, sizeof all);
}

static void end_session(struct connection *made)
{
    int *files[OWN_FILES];
    list_files(made, files);
    for (int i = 0; i < OWN_FILES; i++)
        drop_file(files[i]);
    if (made->session)
        munmap(made->session, sizeof *made->session);
    if (made->time)
        munmap((void *)made->time, sizeof *made->time);
}

/* Sends the memory of this process, gets that and the pipes of the NICs. Returns 0 or errno. */
static int open_session(struct connection *made, struct uverbs_reply *reply)
{
    void *session;
    int session_fd = new_memory("emu-session", sizeof *made->session, &session);
    if (session_fd < 0)
        return errno;
    made->session = session;
    made->session->held = 1; /* up to count_threads: this thread runs */
    made->memory_fd = new_memory("emu-memory", ADDRESS_SPACE, NULL);
    const int given[] = {session_fd, made->memory_fd};
    struct uverbs_request request = {
        .command = UVERBS_OPEN, .version = UVERBS_VERSION, .pid = (uint32_t)getpid()};
    int got[] = {-1, -1, -1};
    int error = made->memory_fd < 0 ? errno : send_request(made->socket, &request, given, 2);
    if (!error)
        error = receive_reply(made->socket, reply, got, 3);
    close(session_fd);
    made->bell_fd = got[0];
    made->events_fd = got[2];
    made->device = reply->opened.device;
    made->clock = reply->opened.clock;
    void *time = MAP_FAILED;
    if (!error)
        time = mmap(NULL, sizeof *made->time, PROT_READ, MAP_SHARED, got[1], 0);
    if (got[1] >= 0)
        close(got[1]);
    made->time = time == MAP_FAILED ? NULL : time;
    return error ? error : made->time ? 0 : ENOMEM;
}

/* The parent's session stays mapped, as its thread may still have a place there; but what the child
 * writes into it is lost. */
void forget_connection(void)
{
    copy_shared_pages(connected.memory_fd);
    if (connected.session) {
        reconnects |= connected.clock.is_exact;
        mmap(connected.session, sizeof *connected.session, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        connected = (struct connection){.socket = -1};
    }
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&asking, NULL);
}

/* A program that finds no device should know why, once. */
static void say_why(const char *reason)
{
    static bool is_said;
    if (!is_said)
        fprintf(stderr, "emu verbs: no connection to this host's NIC: %s\n", reason);
    is_said = true;
}

static int open_connection(void)
{
    const char *path = getenv("EMU_VERBS");
    struct connection made = {
        .socket = path ? connect_to(path) : -1, .memory_fd = -1, .bell_fd = -1, .events_fd = -1};
    if (made.socket < 0) {
        int error = errno;
        if (path)
            say_why(error == EMFILE ? "the program has no free file descriptor" : strerror(error));
        return path && error == EMFILE ? EMFILE : ENODEV;
    }
    struct uverbs_reply reply = {0};
    int error = open_session(&made, &reply);
    if (!error && made.clock.is_exact && !have_places()) {
        snprintf(reply.reason, sizeof reply.reason, "the program has too many threads");
        error = EAGAIN;
    }
    if (error) {
        say_why(reply.reason[0] ? reply.reason : strerror(error));
        end_session(&made);
        return error;
    }
    install_traps();
    connected = made;
    int *files[OWN_FILES];
    list_files(&connected, files);
    for (int i = 0; i < OWN_FILES; i++)
        keep_file(files[i]);
    if (made.clock.is_exact)
        count_threads();
    release_time();
    return 0;
}

const struct connection *connection(void)
{
    pthread_mutex_lock(&lock);
    bool is_new = connected.socket < 0;
    int before = errno, error = is_new ? open_connection() : 0;
    pthread_mutex_unlock(&lock);
    if (is_new && !error)
        is_active();
    errno = error ? error : before;
    return error ? NULL : &connected;
}

const struct connection *present_connection(void)
{
    if (__atomic_load_n(&connected.session, __ATOMIC_ACQUIRE))
        return &connected;
    return reconnects ? connection() : NULL;
}

static int exchange(const struct uverbs_request *request, const int *files, unsigned count,
                    struct uverbs_reply *reply, int *got, unsigned got_count)
{
    if (!connection())
        return errno;
    is_active();
    pthread_mutex_lock(&asking);
    int error = send_request(connected.socket, request, files, count);
    if (!error)
        error = receive_reply(connected.socket, reply, got, got_count);
    pthread_mutex_unlock(&asking);
    bool have_ended = error == EPIPE || error == ECONNRESET; /* the NICs */
    return have_ended ? EIO : error;
}

int ask(const struct uverbs_request *request, const int *files, unsigned count,
        struct uverbs_reply *reply)
{
    return exchange(request, files, count, reply, NULL, 0);
}

int ask_for_file(const struct uverbs_request *request, struct uverbs_reply *reply, int *file)
{
    *file = -1;
    int error = exchange(request, NULL, 0, reply, file, 1);
    return error ? error : *file < 0 ? ENODEV : 0;
}

/* ---- doorbells
 * ----------------------------------------------------------------------------------- */

void wake_nics(void)
{
    uint64_t one = 1;
    int error = errno;
    ssize_t written = write(connected.bell_fd, &one, sizeof one);
    (void)written;
    errno = error;
}

void ring_doorbell(struct emu_ring *ring)
{
    static pthread_mutex_t ringing = PTHREAD_MUTEX_INITIALIZER;
    struct uverbs_session *session = connected.session;
    looks_elsewhere = true;
    __atomic_store_n(&ring->shared->head, ring->head, __ATOMIC_RELEASE);
    if (__atomic_exchange_n(&ring->shared->rung, 1, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(&ringing);
    session->doorbells[session->rings % UVERBS_DOORBELLS] = ring->doorbell;
    __atomic_store_n(&session->rings, session->rings + 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&ringing);
    if (!connected.clock.is_exact || __atomic_load_n(&connected.time->rests, __ATOMIC_SEQ_CST))
        wake_nics();
}
