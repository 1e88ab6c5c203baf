/* The memory that a program's verbs library shares with the process of the NICs.
 *
 *     program ─ post ─▶ uverbs_queue, doorbell ─▶ NICs          one queue of sends and one of
 *     program ◀─ poll ─ uverbs_cq ◀────────────── NICs          receives for each queue pair
 *
 *     program ─ waits ─▶ uverbs_thread ─▶ NICs: may emulated time pass?
 *     program ◀──────── uverbs_time ◀──── NICs
 *
 * Each ring has one writer of `head` and one of `tail`; both count without end. The library's
 * threads take turns by a lock. The NICs copy what they read and check it: a program may write
 * anything here, and harms itself alone. */
#ifndef EMU_UVERBS_RINGS_H
#define EMU_UVERBS_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic_api.h"
#include "uverbs/messages.h"

/* ---- work requests ------------------------------------------------------------------- */

enum uverbs_wqe_flag {
    UVERBS_SIGNALED = 1,
    UVERBS_INLINE = 2,
    UVERBS_SOLICITED = 4,
    UVERBS_COPIED = 8 /* with UVERBS_INLINE: the library has copied what the list named */
};

/* A work request. Its scatter/gather elements follow, or its inline data. */
struct uverbs_wqe {
    uint64_t wr_id;
    uint32_t sge_count;
    uint32_t inline_bytes;
    /* The rest is for sends only. */
    uint8_t verb;  /* enum verb */
    uint8_t flags; /* bits of enum uverbs_wqe_flag */
    uint8_t sl;    /* of a datagram, as all here up to the Q_Key */
    uint8_t path_bits;
    uint32_t address;
    uint32_t qpn, qkey;
    uint32_t imm_data; /* or the key to invalidate */
    uint32_t rkey;
    uint64_t remote_addr;
    uint64_t compare_add, swap;
};

struct uverbs_queue {
    uint32_t head; /* of the program */
    uint32_t tail; /* of the NICs */
    uint32_t rung; /* its handle is among the doorbells */
    uint32_t slots, slot_bytes;
    uint32_t dropped; /* of the NICs: receives of a shared queue that end without a completion */
    uint32_t padding[10];
    uint8_t bytes[];
};

static inline uint32_t uverbs_slot_bytes(uint32_t inline_bytes, uint32_t sges)
{
    uint32_t list = sges * (uint32_t)sizeof(struct sge);
    uint32_t room = inline_bytes > list ? inline_bytes : list;
    return (uint32_t)((sizeof(struct uverbs_wqe) + room + 63) / 64 * 64);
}

static inline uint64_t uverbs_queue_bytes(uint32_t slots, uint32_t slot_bytes)
{
    return sizeof(struct uverbs_queue) + (uint64_t)slots * slot_bytes;
}

/* ---- completions ----------------------------------------------------------------------- */

struct uverbs_cqe {
    uint64_t wr_id;
    uint64_t at_ns;  /* emulated */
    uint32_t status; /* enum status */
    uint32_t verb;   /* enum verb */
    uint32_t byte_len;
    uint32_t imm_data; /* or the invalidated key */
    uint32_t qp_num, src_qp;
    uint32_t posted; /* of a send: the queue's `head` after it was posted */
    uint16_t slid, pkey_index;
    uint8_t wc_flags; /* bits of enum wc_flag */
    uint8_t is_receive, sl, path_bits;
    uint32_t padding;
};

enum uverbs_armed { UVERBS_NOT_ARMED, UVERBS_ARMED, UVERBS_ARMED_SOLICITED };

struct uverbs_cq {
    uint32_t head;  /* of the NICs */
    uint32_t armed; /* enum uverbs_armed: the next completion is an event */
    uint32_t overrun;
    uint32_t entries;
    uint32_t padding[12];
    uint32_t tail; /* of the program */
    uint32_t padding2[15];
    struct uverbs_cqe at[];
};

static inline uint64_t uverbs_cq_bytes(uint32_t entries)
{
    return sizeof(struct uverbs_cq) + (uint64_t)entries * sizeof(struct uverbs_cqe);
}

/* ---- threads and time -------------------------------------------------------------------- */

/* A queue's doorbell is twice the handle of its queue pair or shared receive queue, plus 1 for
 * receives. */
enum { UVERBS_THREADS = 4096, UVERBS_HANDLES = 8192, UVERBS_DOORBELLS = 2 * UVERBS_HANDLES };

enum uverbs_thread_state { UVERBS_NO_THREAD, UVERBS_RUNS, UVERBS_WAITS };

/* What ends a wait before its time. */
enum uverbs_news {
    UVERBS_NO_NEWS,
    UVERBS_ANY_NEWS, /* completions, events, and messages that have changed memory */
};

/* A thread that counts. */
struct uverbs_thread {
    uint32_t tid;
    uint32_t state;   /* enum uverbs_thread_state; who lets it run adds to `running` */
    uint32_t wakes;   /* a futex: counts the ends of waits */
    uint32_t news;    /* enum uverbs_news */
    int64_t until_ns; /* the wait ends then at the latest, in emulated time; INT64_MAX: never */
};

/* One for each process. */
struct uverbs_session {
    uint32_t running;                     /* threads in state UVERBS_RUNS */
    uint32_t held;                        /* threads that will run soon, wherever they are now */
    uint32_t activity;                    /* counts calls of the library, ... */
    uint32_t clock_reads;                 /* ... and how often it has shown the time */
    uint32_t rings;                       /* doorbells so far */
    uint32_t thread_slots;                /* of `threads` that were ever used */
    uint32_t port_is_down;                /* written by the NICs */
    uint32_t doorbells[UVERBS_DOORBELLS]; /* of queues with new work requests */
    struct uverbs_thread threads[UVERBS_THREADS];
};

/* Emulated time, on the exact clock. One for all processes. */
struct uverbs_time {
    int64_t now_ps;
    uint32_t passes; /* while it is not 0, `now_ps` is not the time yet */
    uint32_t rests;  /* the NICs sleep, up to new work or another end of a wait */
};

/* ---- events, read from pipes ---------------------------------------------------------------- */

struct uverbs_event {
    uint32_t kind;   /* enum uverbs_event_kind */
    uint32_t handle; /* of the object */
};

enum uverbs_event_kind {
    UVERBS_COMPLETION,
    UVERBS_CQ_ERROR,
    UVERBS_QP_FATAL,
    UVERBS_QP_REQ_ERROR,
    UVERBS_QP_ACCESS_ERROR,
    UVERBS_COMM_EST,
    UVERBS_SQ_DRAINED,
    UVERBS_SRQ_LIMIT_REACHED,
    UVERBS_PORT_ACTIVE,
    UVERBS_PORT_ERROR,
    UVERBS_LAST_WQE_REACHED,
};

#endif
