/* Link-level credits of InfiniBand for one virtual lane in one direction (IBTA vol 1, 7.9.4).
 *
 * Both ends count 64-byte blocks, modulo 4096, since the link came up:
 *
 *     sender                                receiver
 *     FCTBS  blocks sent so far             ABR   blocks received so far
 *     FCCL   the limit it received          FCCL = ABR + free blocks (at most 2048)
 *
 * The receiver advertises FCCL in flow-control packets. FCCL is an absolute limit, so a lost update
 * costs only time. The sender puts FCTBS into its own flow-control packets, and the receiver sets
 * ABR to it. This corrects the count after a packet was lost on the way.
 *
 * A packet of n blocks may be sent iff (FCCL - (FCTBS + n)) mod 4096 <= 2048.
 *
 *     | Op 4 | FCTBS 12 | VL 4 | FCCL 12 | LPCRC 16 |      6 bytes */
#ifndef EMU_LINK_CREDIT_H
#define EMU_LINK_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CREDIT_BLOCK = 64,      /* bytes */
    CREDIT_MODULUS = 4096,  /* blocks; FCTBS, FCCL and ABR are 12 bits wide */
    CREDIT_WINDOW = 2048,   /* blocks; the most that is ever advertised */
    FLOW_CONTROL_BYTES = 6, /* length of a flow-control packet */
    FLOW_CONTROL_NORMAL = 0,
    FLOW_CONTROL_INIT = 1,
};

struct credit_sender {
    uint16_t fctbs, fccl;
    bool limited; /* false until the first flow-control packet: nothing may be sent */
};

struct credit_receiver {
    uint16_t abr;
    uint32_t buffer_blocks; /* size of this lane's buffer */
    uint32_t used_blocks;   /* held by packets that have not left yet */
    uint32_t spare_blocks;  /* not advertised: room for copies (fault_duplication.c) */
    uint16_t promised;      /* the highest limit advertised so far */
};

struct flow_control {
    uint8_t op, vl;
    uint16_t fctbs, fccl;
};

static inline uint32_t credit_blocks(uint32_t bytes)
{
    return (bytes + CREDIT_BLOCK - 1) / CREDIT_BLOCK;
}

/* Blocks that the sender may send under the present limit. */
uint32_t credit_left(const struct credit_sender *sender);
bool credit_may_send(const struct credit_sender *sender, uint32_t bytes);
void credit_sent(struct credit_sender *sender, uint32_t bytes);
void credit_granted(struct credit_sender *sender, uint16_t fccl);

/* A packet of `bytes` arrived. False when the buffer has no room: its sender broke the rule. */
bool credit_received(struct credit_receiver *receiver, uint32_t bytes);
void credit_released(struct credit_receiver *receiver, uint32_t bytes);
void credit_synchronised(struct credit_receiver *receiver, uint16_t fctbs);
/* The limit to advertise now. */
uint16_t credit_limit(struct credit_receiver *receiver);
/* Whether the buffer has room for one more packet, besides all that the sender has credit for. */
bool credit_has_spare_room(const struct credit_receiver *receiver, uint32_t bytes);

void flow_control_build(const struct flow_control *packet, uint8_t bytes[FLOW_CONTROL_BYTES]);
/* False when the LPCRC is wrong or Op is neither init nor normal. */
bool flow_control_parse(struct flow_control *packet, const uint8_t *bytes, uint32_t length);

#endif
