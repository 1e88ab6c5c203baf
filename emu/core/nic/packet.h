/* A transport packet as fields. The payload is pointed at, not copied.
 *
 *     BTH | extension headers | payload | pad        (ICRC and beyond are gone)
 *
 * An elided payload has a length and no bytes.
 *
 * The opcode alone determines the extension headers, so one table serves both reading and
 * writing:
 *
 *     DETH | RETH, AtomicETH or AETH | AtomicAckETH | ImmDt or IETH
 *
 * One header is our own. With selective repeat a NAK carries, behind its AETH, the range of
 * packets around the newest arrival that the receiver has, from `first` to before `end`:
 *
 *     | rsv 8 | first 24 | rsv 8 | end 24 |
 *
 * Other tools show it as 8 bytes of payload. */
#ifndef EMU_NIC_PACKET_H
#define EMU_NIC_PACKET_H

#include "headers/transport.h"
#include "nic/nic_api.h"

enum packet_type {
    PACKET_UNSUPPORTED, /* a request of no kind we know: refused by the responder */
    PACKET_SEND,
    PACKET_WRITE,
    PACKET_READ,
    PACKET_ATOMIC,
    PACKET_READ_RESPONSE,
    PACKET_ACKNOWLEDGE, /* NAKs and answers to atomics too */
    PACKET_CNP,
    PACKET_ALIEN, /* of another transport class */
};

enum header {
    HEADER_RETH = 1,
    HEADER_ATOMIC = 2,
    HEADER_AETH = 4,
    HEADER_ATOMIC_ACK = 8,
    HEADER_IMM = 16,
    HEADER_IETH = 32,
};

enum { SACK_BYTES = 8 };

struct packet {
    struct bth bth;
    uint8_t type;           /* enum packet_type */
    uint8_t transport;      /* enum transport */
    uint8_t headers;        /* bits of enum header */
    bool starts, ends;      /* first, last packet of a message (ONLY is both) */
    bool ce;                /* congestion was experienced on the way */
    bool has_sack;          /* NAK of selective repeat */
    const uint8_t *payload; /* NULL: elided */
    uint32_t payload_bytes;
    uint32_t source;    /* IPv4 address or LID of the sender */
    const uint8_t *ip;  /* its IPv4 header; NULL: it has none */
    const uint8_t *lrh; /* its local and */
    const uint8_t *grh; /* its global route header; NULL: it has none */
    struct deth deth;
    union {
        struct reth reth;
        struct atomic_eth atomic;
        struct {
            struct aeth aeth;
            union {
                uint64_t original; /* what an atomic found */
                struct {
                    uint32_t sack_first, sack_end;
                };
            };
        };
    };
    uint32_t immediate; /* ImmDt, or the key in IETH */
};

/* Reads `bytes` from the BTH through the pad, `length` on the wire, of which the first
 * `stored` are there. False when they are too short, or no multiple of four.
 * Sets all but `source`, `ip`, `lrh`, `grh` and `ce`. */
bool packet_parse(struct packet *packet, const uint8_t *bytes, uint32_t length, uint32_t stored);

/* Bytes of the BTH and the extension headers that the opcode has. */
uint32_t packet_header_bytes(uint8_t opcode);

/* The same with what follows them in a CNP, and in a NAK that has a run of packets. */
uint32_t packet_front_bytes(const struct packet *packet);

/* Writes all that. Only fields that the opcode has are looked at. */
void packet_write_front(uint8_t *bytes, const struct packet *packet);

static inline bool packet_has_immediate(const struct packet *packet)
{
    return packet->headers & HEADER_IMM;
}

#endif
