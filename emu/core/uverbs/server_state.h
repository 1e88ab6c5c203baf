/* The state of the NICs' side of programs' verbs, which its files share:
 *
 *     set_up.c       set-up, shared memory
 *     requests.c     work requests, from programs to queue pairs
 *     completions.c  completions and events, from queue pairs to programs
 *     waiting.c      threads that wait, and emulated time
 *     kernel_threads.c   threads as the kernel shows them */
#ifndef EMU_UVERBS_SERVER_STATE_H
#define EMU_UVERBS_SERVER_STATE_H

#include <time.h>

#include "sim/timer.h"
#include "uverbs/rings.h"
#include "uverbs/server.h"

struct uverbs_server {
    struct uverbs_time *time;
    bool *event; /* stops the run of the fabric */
    int bell_fd;
    uint32_t settled; /* times that all waited already */
    double cpu_factor;
    struct uverbs_client *clients;
};

enum { UVERBS_RUNS_SEEN = 8 };

/* A thread on a processor. */
struct uverbs_run {
    uint32_t tid;      /* 0: none */
    uint64_t arrivals; /* at a processor so far */
    int64_t seen_ns;   /* there, the last time */
};

struct uverbs_client {
    struct uverbs_server *server;
    struct uverbs_client *next;
    struct uverbs_session *session;
    uint32_t pid;
    int events_fd;
    uint8_t default_sl; /* of datagrams whose address handle has level 0 */
    bool has_news;      /* its threads must look at their queues */
    bool has_events;    /* a queue pair or shared receive queue has noted some */
    bool link_is_up;    /* as it knows */
    uint32_t rings_taken;
    struct nic *nic;
    /* A thread that reads memory again and again, until it changes (waiting.c). */
    bool spins;
    uint64_t writes;   /* of the NIC, so far */
    bool has_found;    /* its memory has changed since it last called the library */
    uint32_t activity; /* of the session, so far */
    int64_t looked_ns; /* processor time of the process at the last look, ... */
    struct uverbs_run runs[UVERBS_RUNS_SEEN]; /* ... and threads that ran then */
    int64_t computed_ns;                      /* since that activity */
    int64_t called_ns; /* that, and while it called the library, since time last passed */
    int64_t patience_ns, patience_after_write_ns, patience_with_calls_ns;
    int64_t charged_ns;     /* processor time that has passed as emulated time */
    picoseconds busy_until; /* it computes until then */
    clockid_t processor;
    struct uverbs_completions *completions;
    struct uverbs_send_queue *sends[UVERBS_HANDLES]; /* by handle */
    struct uverbs_receive_queue *receives[UVERBS_HANDLES];
};

/* A queue of work requests in shared memory. The NICs have its dimensions and their place in it
 * for themselves, because a program may write over those in the memory. */
struct uverbs_ring {
    struct uverbs_queue *shared;
    uint64_t bytes;
    uint32_t slots, slot_bytes;
    uint32_t taken; /* requests so far */
};

/* A request that was taken. It is the wr_id by which the queue pair knows it. */
struct uverbs_ticket {
    uint64_t wr_id;                        /* the program's */
    uint32_t posted;                       /* of sends: requests so far, with this one */
    struct uverbs_receive_queue *receives; /* NULL: it is a send */
    struct uverbs_ticket *next_free;
};

struct uverbs_send_queue {
    struct uverbs_client *client;
    uint32_t handle;
    struct uverbs_ring ring;
    uint32_t inline_bytes;
    struct uverbs_ticket *tickets; /* by slot */
    struct verbs_qp *qp;
    struct event_watch watch;
    bool is_datagram;
};

/* The receives of a shared queue end in any order. */
struct uverbs_receive_queue {
    struct uverbs_client *client;
    uint32_t handle;
    struct uverbs_ring ring;
    struct uverbs_ticket *tickets, *free;
    struct verbs_qp *qp; /* NULL: of `srq` */
    struct verbs_srq *srq;
    struct event_watch watch; /* of `srq` */
    uint32_t dropped;         /* as the program knows */
};

struct uverbs_completions {
    struct uverbs_client *client;
    struct uverbs_completions *next;
    uint32_t handle;
    struct cq *cq;
    struct uverbs_cq *shared;
    uint64_t bytes;
    uint32_t entries, head;
    bool is_overrun; /* the program knows */
    int channel_fd;
};

/* requests.c: the program gets its place in a shared queue back without a completion. */
void uverbs_drop_receive(uint64_t ticket);

/* ---- kernel_threads.c ---- */

/* Places of threads in the session that were ever used. */
uint32_t uverbs_thread_slots(const struct uverbs_session *session);
/* In the library, or in the kernel until something wakes them. */
bool uverbs_all_threads_wait(const struct uverbs_client *client);
/* Of a new client. */
void uverbs_find_processor_clock(struct uverbs_client *client);
/* Processor time of the process, which is exact when no thread runs. */
int64_t uverbs_processor_ns(const struct uverbs_client *client);
/* How long its threads have computed from here to the next look, or since the last one. */
void uverbs_begin_look(struct uverbs_client *client);
int64_t uverbs_used_since_look(struct uverbs_client *client);

/* waiting.c: of a new client. */
void uverbs_begin_waiting(struct uverbs_client *client);

static inline void uverbs_free_ticket(struct uverbs_ticket *ticket)
{
    ticket->next_free = ticket->receives->free;
    ticket->receives->free = ticket;
}

/* Maps shared memory of exactly that size, which must not shrink. */
void *uverbs_map_memory(int fd, uint64_t bytes);

#endif
