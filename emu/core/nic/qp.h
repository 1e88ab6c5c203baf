/* A queue pair: one end of a connection, or a place for datagrams.
 *
 *                 requester                          responder
 *     messages ─▶ send queue ── SEND, WRITE, READ, atomics ─▶ admission ─▶ memory
 *        over  ◀─ completer  ◀─ ACK, NAK, READ responses ──── responses ◀─┘
 *                 reaction   ◀──────────── CNP ────────────── notification
 *
 *  - send_queue.c      holds messages from posting to completion, in order
 *  - requester.c       decides which packet goes next, and builds it
 *  - completer.c       handles what comes back: progress, retries, timeouts
 *  - recovery_*.c      decide what is sent again after a loss, and what the receiver keeps
 *  - responder.c       checks requests and executes them
 *  - delivery.c        records with the sender's messages that they have arrived
 *  - receive_queue.c   hands receives to SENDs and immediates
 *  - response_queue.c  holds the ACKs, NAKs, READ and atomic responses that are due
 *  - pacing.c          decides when data may leave, by the rate of congestion control
 *  - turns.c           lets the queue pairs of a NIC take turns
 *  - qp_table.c        has the queue pairs of a NIC and their numbers
 *  - qp_state.c        what each state allows
 *  - qp_error.c        how a queue pair fails
 *  - qp_lifecycle.c    set-up, connection, states and end
 *
 * This header holds the data that all of them share. Each of them includes it; it includes none
 * of them.
 *
 * Requester and responder of one queue pair share nothing but the path, the
 * pacing and the state. */
#ifndef EMU_NIC_QP_H
#define EMU_NIC_QP_H

#include "nic/cc.h"
#include "nic/send_times.h"
#include "nic/wqe.h"

struct nic;
struct recovery;

/* Sequence numbers do not wrap at 24 bits here; a packet carries the low 24 bits. */
struct requester {
    struct message *oldest, *newest; /* posted and not completed */
    struct message *current;         /* holds `next`; NULL when all is sent */
    struct message *fetch;           /* the oldest READ or atomic that is not wholly answered */
    uint64_t unacked;                /* the oldest packet that is not acknowledged */
    uint64_t next;                   /* the packet to send next */
    uint64_t sent_end;               /* after the last packet ever sent */
    uint64_t posted_end;             /* after the last packet of the newest message */
    uint64_t awaited_end;            /* after the last packet in flight that requested an ACK */
    uint32_t arrived;                /* after `unacked`, packets known to have arrived */
    uint32_t since_ack_req;          /* packets sent since then */
    uint32_t fetches;                /* before `current`, and not wholly answered */
    uint32_t ssn;                    /* of the newest message */
    uint32_t ssn_limit;              /* the last message the other end has a receive for */
    bool limited;                    /* whether ssn_limit applies */
    bool response_lost;              /* it was requested again and has not come yet */
    bool broken;                     /* `current` cannot be sent, nor what comes after it */
    bool again;                      /* it retransmits, and has not requested an ACK since */
    bool notes_drained;              /* when all that was begun is over, in SQD */
    uint8_t retries, rnr_retries;    /* since the last progress */
    picoseconds not_before;          /* the end of an RNR NAK's delay */
    struct timer ack_timeout, completion; /* see completer.c */
    struct send_times send_times;         /* none are kept unless congestion control needs them */
    void *recovery_priv;                  /* the recovery's own */
};

/* First in, first out. */
struct receive_queue {
    struct receive *first, *last;
    uint32_t count;
};

/* A receive queue that several queue pairs of a NIC take from. */
struct srq {
    struct nic *nic;
    uint32_t pd;
    uint32_t limit; /* an event when fewer are posted; 0: none */
    struct event_watch *watch;
    struct receive_queue queue;
};

struct responder {
    uint32_t expected; /* PSN */
    uint32_t msn;
    bool refused; /* the expected packet was requested again and has not come yet */
    bool in_message;
    bool is_reached;          /* by a packet, in RTR */
    uint8_t type;             /* enum packet_type of the message that is coming in */
    uint32_t first_psn;       /* of that message */
    uint64_t va;              /* WRITE: its first byte's place, ... */
    uint32_t key;             /* ... in the region of this key */
    uint32_t remaining;       /* bytes: WRITE still to come, SEND still room for */
    uint32_t received;        /* bytes of it so far */
    struct receive *receive;  /* the one it takes */
    struct receive_queue own; /* receives, unless they are shared */
    struct timer failing;     /* set: it fails when the packet at hand has left */
    void *recovery_priv;      /* the recovery's own */
    uint64_t datagrams;       /* taken from the peer */
    struct message *next_expected, *last_expected; /* of the peer (delivery.h) */
};

/* Some of a resource's responses, counted from its first: next == end: all are sent. */
struct run {
    uint32_t from, next, end;
};

/* A READ or atomic that was executed, kept so that it can be answered again. PSNs
 * of its responses are first_psn .. first_psn + packets - 1. */
struct resource {
    bool is_atomic, answered;
    uint32_t first_psn, packets;
    uint32_t msn;
    uint64_t original;    /* atomic */
    picoseconds ready_at; /* READ: memory has answered */
    uint64_t va;          /* READ */
    uint32_t length, rkey;
    struct run stream, repair; /* what is being sent, and what is sent before it */
};

struct response_queue {
    struct resource *ring;
    uint32_t places, newest; /* of the ring */
    uint32_t capacity;       /* how many of the other end's may be outstanding */
    uint32_t pending;        /* resources that have something to send, ... */
    struct resource *first;  /* ... and the oldest of them; NULL: none */
    bool ack_owed;
    bool becn_owed;   /* the next of them says BECN */
    uint8_t syndrome; /* of that ACK or NAK */
    uint32_t nak_psn; /* what a NAK names */
    bool has_sack;
    uint32_t sack_first, sack_end;
};

/* The receiver's state for CNPs: the marked packets that it has not reported yet. */
struct notification_point {
    picoseconds next_at;   /* no CNP before */
    struct qp *pending_qp; /* its peer gets a CNP when `due` fires; NULL: none */
    struct timer due;
};

/* Its place in the NIC's queue for one kind of traffic. */
struct turn {
    struct qp *next;
    bool waiting;
};

/* `watch` may be NULL. */
static inline void note_event(struct event_watch *watch, enum nic_event event)
{
    if (!watch)
        return;
    watch->events |= 1U << event;
    *watch->any = *watch->stop = true;
}

struct qp {
    struct nic *nic;           /* NULL: it stands in for one of another process (qp_connect_far) */
    struct qp *peer;           /* the other end, or what stands in for it; for records only */
    void *owner;               /* whatever its application keeps with it */
    struct event_watch *watch; /* NULL: nobody wants events */
    uint32_t qpn;
    enum qp_state state;
    struct qp_config config;
    struct qp_remote remote;
    struct path path;
    struct cc cc;
    struct notification_point *notification_point, own_point;
    const struct recovery *recovery;
    picoseconds not_before; /* pacing: no data until then */
    picoseconds paced_from; /* the last data packet began to leave */
    uint32_t paced_bytes;   /* its bytes on the wire */
    bool response_was_last; /* of requests and READ responses, which take turns */
    struct timer wake;
    struct turn turns[TRAFFIC_KINDS];
    struct requester requester;
    struct responder responder;
    struct response_queue responses;
    uint32_t next_free; /* of a free place (qp_table.h) */
};

#endif
