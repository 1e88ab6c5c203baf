/* A library that stands in for libibverbs in programs on an emulated host (LD_PRELOAD). The verbs
 * objects of the program are here; the NIC that carries out their work is in another process.
 *
 *     program ── ibv_* ──▶ objects.c, queue_pair.c … ── connection.c ──▶ NICs    make, change
 *                     └──▶ post.c, poll.c ══ shared memory ════════════▶ NICs    work
 *
 * The first way has core/uverbs/messages.h, the second core/uverbs/rings.h.
 *
 * Names, results and errno are those of libibverbs' manual pages. What this NIC does not have ends
 * with EOPNOTSUPP; EMU_VERBS_DEBUG=1 names it on stderr, and the reasons of other errors. */
#ifndef EMU_VERBS_LIBRARY_H
#define EMU_VERBS_LIBRARY_H

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "nic/nic_api.h"
#include "nic/verbs_api.h"
#include "uverbs/rings.h"

/* An object that is returned by the pointer to its first member looks lost to gcc's analyzer. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

#define EXPORT __attribute__((visibility("default")))

/* The next library's function of this name. A file that uses this defines _GNU_SOURCE. */
#define REAL(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(&(name)) real;                                                           \
        if (!real)                                                                                 \
            real = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name);                                   \
        real;                                                                                      \
    })

enum { PORT_NUMBER = 1 };

struct emu_context {
    struct verbs_context verbs;
};

struct emu_pd {
    struct ibv_pd pd;
};

/* A memory region: the program's bytes that the NICs have. */
struct shared_range {
    uint64_t addr, length;
    uint32_t handle; /* the region's, once it is known */
    /* The rest is of shared_memory.c. */
    uint64_t from, to; /* its pages */
    struct shared_range *next;
};

struct emu_mr {
    struct ibv_mr mr;
    struct shared_range *range;
    unsigned access; /* enum ibv_access_flags */
};

struct emu_channel {
    struct ibv_comp_channel channel;
    uint32_t handle;
    uint32_t events; /* that the program got */
};

struct emu_cq {
    struct ibv_cq_ex cq;
    pthread_mutex_t lock;
    struct uverbs_cq *shared;
    uint32_t tail, entries;
    struct uverbs_cqe current; /* of an extended poll */
    uint32_t events;           /* of its channel that the program got */
    uint32_t async_events;
};

/* A queue of work requests in shared memory. */
struct emu_ring {
    pthread_mutex_t lock;
    struct uverbs_queue *shared;
    uint64_t bytes;
    uint32_t slots, slot_bytes;
    uint32_t head;      /* requests written */
    uint32_t completed; /* of these, those whose place is free again */
    uint32_t doorbell;
};

struct emu_srq {
    struct ibv_srq srq;
    struct emu_ring ring;
    uint32_t max_sge;
    uint32_t async_events; /* that the program got */
};

struct emu_qp {
    struct ibv_qp_ex qp; /* first: struct ibv_qp is its first member */
    struct emu_ring sends, receives;
    struct emu_srq *srq;
    uint32_t max_inline_data, max_send_sge, max_recv_sge;
    uint32_t most_copied; /* bytes of a datagram; 0: no datagrams */
    bool signals_all, sends_ready, is_datagram;
    struct ibv_qp_attr attr; /* as modified so far */
    struct ibv_qp_init_attr init_attr;
    uint32_t async_events; /* that the program got */
    int64_t queried_ns;    /* by the last ibv_query_qp */
    /* Of ibv_wr_start to ibv_wr_complete. */
    struct uverbs_wqe *building;
    uint32_t first_built;
    int building_error;
};

struct emu_ah {
    struct ibv_ah ah;
    struct ibv_ah_attr attr;
    uint32_t address;
};

/* ---- connection.c: to the NICs, one for each process ------------------------------------- */

struct connection {
    int socket;
    int memory_fd; /* of the program's registered memory: a page's place is its address */
    int bell_fd;
    struct uverbs_session *session;
    const struct uverbs_time *time;
    struct uverbs_device device;
    struct uverbs_clock clock;
    int events_fd; /* of asynchronous events */
};

/* Connects if need be. NULL: with errno. */
const struct connection *connection(void);
/* NULL: there is none yet. A child of a program that has one gets its own. */
const struct connection *present_connection(void);
/* In a child, which has its own from its first call on. Copies the shared pages, too. */
void forget_connection(void);
/* Sends a request with files (closed by the caller) and waits for its reply. Returns 0 or errno. */
int ask(const struct uverbs_request *request, const int *files, unsigned count,
        struct uverbs_reply *reply);
/* The same for a request whose reply brings a file, which is -1 after an error. */
int ask_for_file(const struct uverbs_request *request, struct uverbs_reply *reply, int *file);
/* New shared memory of this size. Returns its file, or -1 with errno. */
int new_memory(const char *name, uint64_t bytes, void **memory);
/* The NICs read a queue's doorbell when emulated time next passes; on the real clock, now. */
void ring_doorbell(struct emu_ring *ring);
void wake_nics(void);
/* One line on stderr, if EMU_VERBS_DEBUG is set. */
void debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says so, sets errno, and returns EOPNOTSUPP. */
int unsupported(const char *what);

/* ---- kept_files.c: descriptors that the program cannot close --------------------------------- */

/* From now on up to drop_file. `file`: where the library looks up its number, which may change. */
void keep_file(int *file);
/* Closes it, and sets its number to -1. */
void drop_file(int *file);
/* In a child: closes its copies of its parent's. */
void forget_files(void);

/* ---- forks.c ------------------------------------------------------------------------------ */

/* Whether a system call, with its arguments, makes a child with memory of its own. */
bool is_fork(long number, const long *arguments);
/* Makes it, and returns as the system call does. */
long fork_by_call(long number, const long *arguments);

/* ---- handles.c: the objects of this process, by handle and by queue pair number ------------- */

/* Destroys an object, and `waits` until the program has acknowledged its events. Returns 0 or
 * errno. */
typedef int end_function(void *object, bool waits);

void *object_of(uint32_t handle);
/* From now on; until end_object. `end` is for end_objects. */
void remember(uint32_t handle, void *object, const struct ibv_context *context, end_function *end);
/* The NICs destroy their side. Returns 0 or errno. */
int end_object(uint32_t handle, const void *object);
/* Ends all objects that the program has left in a context. */
void end_objects(const struct ibv_context *context);
/* False: it is one of the parent process, with a reason. */
bool is_own_object(uint32_t handle, const void *object);
/* As `ask`; EINVAL for an object that is not this process's own. */
int ask_for_object(const void *object, const struct uverbs_request *request,
                   struct uverbs_reply *reply);
struct emu_qp *qp_of(uint32_t qp_num);
void remember_qp(uint32_t qp_num, struct emu_qp *qp);
/* Regions whose addresses in work requests are those of the program. */
void remember_mr(struct emu_mr *mr);
void forget_mr(const struct emu_mr *mr);
/* NULL: not known by this key, though the NIC may know it. */
const struct emu_mr *mr_of(uint32_t lkey);
/* In a child. */
void forget_objects(void);

/* ---- objects.c ------------------------------------------------------------------------------ */

/* Counts an event that the program gets of that handle. */
void count_event(uint32_t *events);
/* The program has acknowledged so many. */
void acknowledge(uint32_t *acknowledged, uint32_t events);
/* Waits until `acknowledged` has reached the events that the program got of an object. */
void await_acknowledgements(const uint32_t *acknowledged, const uint32_t *events);

/* The NIC's names of IBV_ACCESS flags. */
uint32_t access_of(unsigned access);

/* ---- device.c ------------------------------------------------------------------------------- */

enum ibv_mtu mtu_code(uint32_t bytes);

/* ---- qp_attributes.c ------------------------------------------------------------------------ */

/* Whether ibv_modify_qp may have these. Returns 0, EINVAL or EOPNOTSUPP, with a reason. */
int check_qp_attributes(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);

/* ---- address.c ------------------------------------------------------------------------------ */

/* False: the device has no such port, with a reason. */
bool is_port(uint8_t port_num);

/* The IPv4 address or LID that an address vector leads to. Returns 0, or EINVAL. */
int address_of(const struct ibv_ah_attr *attr, uint32_t *address);

/* ---- shared_memory.c ------------------------------------------------------------------------- */

/* Makes pages of the program shared with the NICs, in place, until unshare_pages. Returns 0, or
 * errno with a reason. */
int share_pages(struct shared_range *range, bool is_written);
/* Pages that no other range has are the program's alone again. */
void unshare_pages(struct shared_range *range);
/* Around a fork. The child gets copies of all pages in place, and has no ranges. */
void before_fork(void);
void after_fork(void);
void copy_shared_pages(int memory_fd);

/* ---- traps.c ------------------------------------------------------------------------------- */

/* Takes over SIGSEGV. */
void install_traps(void);
/* Threads that write to these pages, which are read-only for a moment, wait. */
void hold_writers(uint64_t from, uint64_t to);
void release_writers(void);

/* ---- signal_masks.c ------------------------------------------------------------------------ */

/* The set without SIGSEGV, in `copy`. NULL stays NULL. */
const sigset_t *without_traps(const sigset_t *set, sigset_t *copy);
/* A new thread's mask from now on. */
void take_mask(const sigset_t *mask);
/* The first thread keeps the mask that it was given. */
void inherit_mask(void);
/* All signals wait until restore_signals, which gets what this returns. */
sigset_t block_signals(void);
void restore_signals(const sigset_t *before);
/* Somebody has sent SIGSEGV. True: the program blocks it, and gets it later. */
bool keep_signal(void);

/* ---- queue_memory.c ------------------------------------------------------------------------- */

/* As new_memory, up to free_queue_memory. */
int new_queue_memory(const char *name, uint64_t bytes, void **memory);
void free_queue_memory(void *memory);
/* In a child: the parent's queues are not its own. */
void own_queue_memory(void);

/* ---- queue_ring.c --------------------------------------------------------------------------- */

int ring_create(struct emu_ring *ring, uint32_t slots, uint32_t inline_bytes);
void ring_destroy(struct emu_ring *ring);
/* Where the next request goes; the caller raises `head`. NULL: the queue is full. */
struct uverbs_wqe *ring_next(struct emu_ring *ring);
/* Requests whose place is free again. */
uint32_t ring_ended(const struct emu_ring *ring);

/* ---- functions of contexts ------------------------------------------------------------------ */

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size);
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
void set_wr_functions(struct emu_qp *qp);
void set_poll_functions(struct emu_cq *cq);
/* The NICs have reset or removed the queue pair: its completions that were not polled go, too. */
void drop_completions(struct emu_qp *qp);

/* ---- unsupported.c ----------------------------------------------------------------------------
 */

/* The functions of a context that this NIC does not have. */
void refuse_the_rest(struct verbs_context *verbs);

/* ---- waiting.c: on the exact clock ---------------------------------------------------------- */

/* The calling thread waits until something has happened to its queues, or until a time. True: a
 * signal has interrupted that. */
bool wait_for_news(int64_t until_ns);
/* A call is about to say "not yet": the queue is empty, or full. On the exact clock that is a
 * reason to let time pass, but for the first time, after which the program may have other things to
 * do. Later on, too, it looks elsewhere from time to time; the longer it asks in vain, the less
 * often. `progress`: a number that changes when the object does. */
void wait_after_not_yet(const void *object, uint32_t progress);
/* The thread has posted or taken something since such a call. */
extern __thread bool looks_elsewhere;
/* The two halves of a wait: emulated time may pass after the first. */
uint32_t begin_wait(int64_t until_ns, enum uverbs_news news);
bool end_wait(uint32_t wakes);
bool end_cancellable_wait(uint32_t wakes); /* pthread_cancel ends the thread meanwhile */
/* When the calling thread's wait ends, for others to change; NULL: it does not count. */
int64_t *own_end_of_wait(void);
/* A call of the library: the thread computes. */
void is_active(void);
/* A thread, by its number, has a place in the session from now on; the calling one has none. */
void count_thread(uint32_t tid);
void leave_place(void);
/* In a child: its parent's place is not its own. */
void forget_place(void);
/* Emulated time stands in between, although the threads that run next may sleep now. */
void hold_time(void);
void release_time(void);
/* Whether the signal waits for a thread that does not block it. */
bool is_pending(int number);
/* Sends this signal to the process by `send(of)`, and returns when a thread handles it. */
void send_signal(int number, void (*send)(void *), void *of);
/* If they sleep because nothing will happen: it may now. */
void wake_resting_nics(void);
int64_t emulated_ps(void);
int64_t emulated_ns(void);

/* ---- threads.c ---------------------------------------------------------------------------- */

/* The calling thread leaves its place when it ends. */
void watch_thread(void);
/* A thread of this library, which may begin although the program has all threads that it may have.
 */
int create_own_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                      void *argument);
/* Whether there are places for all threads of the program. */
bool have_places(void);
/* All threads get a place in the session. */
void count_threads(void);
/* In a child. */
void forget_threads(void);

/* ---- alarms.c: what happens at emulated times --------------------------------------------- */

struct alarm {
    int64_t at_ns;
    void (*ring)(struct alarm *); /* with the alarms locked; may put the alarm in again */
    bool has_rung;
    struct alarm *next;
};

/* It rings once, at that time or now if that is past. Not in the middle of clear_alarm. */
void set_alarm(struct alarm *alarm, int64_t at_ns);
void clear_alarm(void *alarm);
/* Locks all alarms, with signals blocked. Returns the signal mask for unlocking. */
sigset_t lock_alarms(void);
void unlock_alarms(const sigset_t *before);
void set_alarm_locked(struct alarm *alarm, int64_t at_ns);
void clear_alarm_locked(struct alarm *alarm);
/* For ring(). */
void put_alarm(struct alarm *alarm, int64_t at_ns);
/* In a child. */
void forget_alarms(void);

/* ---- slices.c ------------------------------------------------------------------------------ */

/* Tries up to a time of CLOCK_REALTIME, which is real. Returns 0 or an error, ETIMEDOUT for the
 * time. */
typedef int attempt(void *of, const struct timespec *at);

/* Tries until an emulated time. Returns 0 or an error, ETIMEDOUT for the time. */
int wait_in_slices(attempt *attempt, void *of, int64_t until_ns);

/* ---- timers.c ------------------------------------------------------------------------------ */

/* The program closes this descriptor; it may be that of a timer. */
void close_timer(int file);
/* In a child. */
void forget_timers(void);

/* ---- emulated_time.c -------------------------------------------------------------------- */

#define NS_PER_S INT64_C(1000000000)

/* Whether the program lives in emulated time. */
bool is_emulated(void);
/* Whether this clock shows it then. */
bool is_followed(clockid_t clock);
/* What the clock shows at emulated time 0. */
int64_t origin_ns(clockid_t clock);
int64_t as_ns(const struct timespec *time);
struct timespec as_timespec(int64_t ns);
bool is_valid(const struct timespec *time);
int real_clock_gettime(clockid_t clock, struct timespec *now);
/* From now on the calling thread, and those that it starts, trap when they read the time stamp
 * counter, if time is emulated. Programs that it starts do not run like that: it does not trap from
 * release_counter, which returns whether it did, up to the next trap_counter. */
void trap_counter(void);
bool release_counter(void);
/* The length of the instruction that reads the counter; 0: it is another one. */
unsigned counter_instruction_bytes(const uint8_t *code);
/* What that instruction reads. */
uint64_t read_counter(const uint8_t *code);

#endif
