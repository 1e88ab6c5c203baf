/* A queue pair of a reliable connection: a requester that sends messages, a
 * responder that executes those of the other end, and what both share.
 *
 *     posted messages ─▶ requester ─ SEND, WRITE ─▶ responder ─▶ memory
 *          completed  ◀─           ◀─ ACK, NAK ───           ─▶ delivered
 *                        reaction  ◀──── CNP ───── notification
 *
 *     INIT ─ qp_connect ─▶ READY ─ qp_fail ─▶ ERROR
 *
 * Messages and receives belong to whoever posts them; the queue pair only
 * chains them together, so that it needs no queues of its own. */
#ifndef RNIC_QP_H
#define RNIC_QP_H

#include "cc.h"
#include "clock.h"
#include "framing.h"
#include "notification.h"
#include "rnic_api.h"

struct nic;
struct message;

/* Told to the poster of a message. Either may post again. */
struct message_handler {
    /* `bytes` more are in the receiver's memory; `all`: the message is. */
    void (*delivered)(struct message *message, uint32_t bytes, bool all, picoseconds now);
    /* It is over, as record->status says; it may be reused. */
    void (*completed)(struct message *message, picoseconds now);
};

struct message {
    const struct message_handler *handler;
    struct message_record *record;
    uint8_t verb; /* enum verb */
    uint32_t lkey, rkey;
    uint64_t local_va, remote_va;
    uint32_t length;
    /* The requester's own. */
    struct message *next;
    uint8_t *bytes;     /* what it sends, only read; NULL: nothing, or elided */
    uint64_t first_psn; /* of its first packet, not wrapped */
    uint32_t packets;
};

/* Where one SEND may be put. */
struct receive {
    uint8_t *bytes; /* NULL: elided */
    uint32_t length;
    struct receive *next; /* the responder's own */
};

/* Sequence numbers count on beyond 24 bits here; only packets carry them cut. */
struct requester {
    struct message *oldest, *newest; /* posted and not completed */
    struct message *current;         /* holds `next`; NULL when all is sent */
    struct message *undelivered;     /* the oldest that is not in the receiver's memory */
    uint64_t unacked;                /* the oldest packet that is not acknowledged */
    uint64_t next;                   /* the packet to send next */
    uint64_t sent_end;               /* after the last packet ever sent */
    uint64_t posted_end;             /* after the last packet of the newest message */
    uint64_t awaited_end;            /* after the last packet in flight that asked for an ACK */
    uint32_t since_ack_req;          /* packets sent since then */
    uint8_t retries, rnr_retries;    /* since the last progress */
    struct timer ack_timeout;
};

struct responder {
    uint32_t expected; /* PSN */
    uint32_t msn;
    bool refused;     /* the expected packet was asked for again and has not come yet */
    uint8_t syndrome; /* of the acknowledgement that is due */
    bool in_message;
    uint8_t verb;       /* of the message that is coming in */
    uint8_t *into;      /* where its next byte goes */
    uint32_t remaining; /* bytes: WRITE still to come, SEND still room for */
    struct receive *receives, *last_receive;
};

enum qp_state { QP_INIT, QP_READY, QP_ERROR };

/* Its place in the NIC's queue for one kind of traffic. */
struct turn {
    struct qp *next;
    bool waiting;
};

struct qp {
    struct nic *nic;
    struct qp *peer; /* the other end, when it is in this process; for records only */
    uint32_t qpn;
    enum qp_state state;
    struct qp_config config;
    struct qp_remote remote;
    struct path path;
    struct cc cc;
    struct notification *notification, own_notification;
    picoseconds not_before; /* pacing, or an RNR NAK: no data until then */
    struct timer wake;
    struct turn turns[TRAFFIC_KINDS];
    struct requester requester;
    struct responder responder;
};

/* Set-up only. False when the config is wrong. */
bool qp_init(struct qp *qp, struct nic *nic, uint32_t qpn, const struct qp_config *config);

/* Queues its data where there is any to send now, or wakes it when there will be. */
void qp_wake(struct qp *qp, picoseconds now);

/* Ends the queue pair: its oldest message fails with `status`, the others are flushed. */
void qp_fail(struct qp *qp, enum status status, picoseconds now);

#endif
