/* A transport packet that has arrived, taken apart but not copied.
 *
 *     BTH | extension headers | payload | pad        (ICRC and beyond are gone)
 *
 * A payload that its sender elided is not there, but has its length.
 *
 * Which extension headers there are follows from the opcode alone. */
#ifndef RNIC_PACKET_H
#define RNIC_PACKET_H

#include "wire.h"

enum packet_type {
    PACKET_REQUEST,     /* SEND or WRITE */
    PACKET_UNSUPPORTED, /* a request of another kind: refused by the responder */
    PACKET_ACKNOWLEDGE,
    PACKET_CNP,
    PACKET_ALIEN, /* a response to what we never ask, or another transport class */
};

struct packet {
    enum packet_type type;
    struct bth bth;
    uint8_t verb;           /* requests: enum verb */
    bool starts, ends;      /* requests: first, last packet of a message (ONLY is both) */
    struct reth reth;       /* a WRITE's first packet */
    struct aeth aeth;       /* acknowledgements */
    const uint8_t *payload; /* NULL: elided */
    uint32_t payload_bytes;
    uint32_t source; /* IPv4 address or LID of the sender */
    bool ce;         /* congestion was experienced on the way */
};

/* `bytes` from the BTH through the pad, `length` on the wire, of which the first
 * `stored` are there. False when they are too short, or no multiple of four.
 * Sets all but `source` and `ce`. */
bool packet_parse(struct packet *packet, const uint8_t *bytes, uint32_t length, uint32_t stored);

#endif
