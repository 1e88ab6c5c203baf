/* Work requests: what an application hands to a queue pair, and gets back when it is done.
 *
 *     message ─▶ send queue       SEND, WRITE, READ, atomics: in the order of posting
 *     receive ─▶ receive queue    memory for one SEND, or a place for one immediate
 *
 * The poster owns both. While they are posted they form a list, so that a queue needs no memory
 * and has no limit of its own. A completion is a call of the handler. A refused request completes
 * at once with the reason, and changes nothing else. */
#ifndef EMU_NIC_WQE_H
#define EMU_NIC_WQE_H

#include "nic/framing.h"
#include "nic/nic_api.h"
#include "sim/clock.h"

struct message;
struct receive;
struct qp;

/* Calls to the poster of a message. Both may post again. */
struct message_handler {
    /* `bytes` more are in the receiver's memory; `all`: the whole message is. */
    void (*delivered)(struct message *message, uint32_t bytes, bool all, picoseconds now);
    /* It is over, as record->status says; it may be reused. */
    void (*completed)(struct message *message, picoseconds now);
};

/* Where a datagram goes (an address handle). */
struct address {
    struct path path;
    uint32_t qpn, qkey;
};

struct message {
    const struct message_handler *handler;
    struct message_record *record;
    const struct address *to; /* datagrams only */
    const uint8_t *inlined;   /* inline data; NULL: the bytes are in a region */
    bool copied;              /* the inline data is a copy of a region's */
    uint8_t verb;             /* enum verb */
    bool solicited;           /* asks the receiver for a solicited event */
    uint8_t refusal;          /* enum status: why it fails when its turn comes; 0: it does not */
    uint8_t sge_count;
    uint32_t lkey, rkey;
    uint32_t length;
    uint64_t local_va, remote_va;
    const struct sge *sges; /* in place of lkey and local_va; NULL: its memory is in one piece */
    uint32_t immediate;     /* or the key to invalidate */
    uint64_t compare, swap_add;
    /* The send queue's own. */
    struct message *next;
    picoseconds ready_at; /* the NIC has its first byte */
    uint64_t first_psn;   /* of its first packet, not wrapped */
    uint32_t packets;     /* PSNs it takes: of a READ those of the responses */
    uint32_t ssn;         /* its number in the send queue, from 1 on */
    /* The receiver's own (delivery.h). */
    struct message *next_expected;
};

/* The responder answers with data. */
static inline bool message_is_fetch(const struct message *message)
{
    return message->verb >= VERB_READ;
}

/* Its data is not in the work request. */
static inline bool message_reads_memory(const struct message *message)
{
    return !message->inlined || message->copied;
}

static inline bool verb_takes_receive(int verb)
{
    return verb <= VERB_SEND_INV || verb == VERB_WRITE_IMM;
}

struct receive {
    void (*completed)(struct receive *receive, picoseconds now); /* NULL: no callback */
    uint32_t lkey;
    uint64_t va;
    uint32_t length;
    uint32_t sge_count;
    const struct sge *sges; /* its memory, in place of lkey and va; NULL: it is in one piece */
    /* The outcome. */
    int32_t status;          /* enum status */
    uint32_t received_bytes; /* datagrams: with the 40 of a GRH */
    bool has_immediate, has_invalidated;
    bool by_write;      /* it only reports a WRITE with immediate data */
    bool solicited;     /* the sender asked for a solicited event */
    uint32_t immediate; /* or the key that was invalidated */
    uint32_t src_qp;
    /* Datagrams; all but has_grh on InfiniBand only. */
    bool has_grh;
    uint8_t sl, dlid_path_bits;
    uint16_t slid;
    struct qp *qp; /* the queue pair that took it, or that it was flushed with */
    /* The receive queue's own. */
    struct receive *next;
};

#endif
