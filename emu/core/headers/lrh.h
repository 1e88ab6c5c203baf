/* The route headers: how an InfiniBand packet finds its way in a subnet (IBTA vol 1, 7.7), and
 * for packets that have a global one (LNH 3, 40 bytes, 8.3), between subnets.
 *
 *     0    | VL 4, LVer 4 | SL 4, 2, LNH 2 |        DLID        |
 *     4    |    5, PktLen 11               |        SLID        |
 *
 * A switch may change the VL on the way, and then renews the VCRC; the SL stays. */
#ifndef EMU_HEADERS_LRH_H
#define EMU_HEADERS_LRH_H

#include "headers/crc16.h"
#include "sim/frame.h"

enum {
    LRH_BYTES = 8,
    GRH_BYTES = 40,
    SLS = 16,
    LVER_MASK = 0x0F,
    LNH_MASK = 3,
    LNH_IBA_LOCAL = 2,
    LNH_IBA_GLOBAL = 3,
    PKTLEN_MASK = 0x7FF,
    VCRC_BYTES = 2,
    IB_ICRC_BYTES = 4,
    IB_BTH_BYTES = 12,
    RAW_HEADER_BYTES = 20,
};

static inline uint8_t lrh_sl(const uint8_t *lrh)
{
    return lrh[1] >> 4;
}

static inline uint16_t lrh_dlid(const uint8_t *lrh)
{
    return (uint16_t)(lrh[2] << 8 | lrh[3]);
}

/* Of the route headers together. */
static inline uint32_t route_bytes(const uint8_t *lrh)
{
    return LRH_BYTES + ((lrh[1] & LNH_MASK) == LNH_IBA_GLOBAL ? GRH_BYTES : 0);
}

/* Whether a transport header follows them: in raw packets (LNH 0 and 1) none does. */
static inline bool lrh_has_bth(const uint8_t *lrh)
{
    return lrh[1] & LNH_IBA_LOCAL;
}

/* Whether a packet has all of its headers and CRCs. Nothing else of a packet may be read before.
 * Raw packets (LNH 0 and 1) have at least 5 words, and a VCRC (IBTA vol 1, 7.7). */
static inline bool lrh_packet_is_whole(const struct frame *frame)
{
    if (frame->stored < LRH_BYTES)
        return false;
    uint32_t headers = RAW_HEADER_BYTES, crcs = VCRC_BYTES;
    if (lrh_has_bth(frame->bytes)) {
        headers = route_bytes(frame->bytes) + IB_BTH_BYTES;
        crcs += IB_ICRC_BYTES;
    }
    return frame->stored >= headers && frame->length >= headers + crcs;
}

/* Of a packet with all its bytes, when some of them have changed. */
static inline void vcrc_renew(uint8_t *packet, uint32_t length)
{
    assert(length > LRH_BYTES + VCRC_BYTES);
    uint32_t covered = length - VCRC_BYTES;
    uint16_t vcrc = crc16(packet, covered);
    packet[covered] = (uint8_t)vcrc;
    packet[covered + 1] = (uint8_t)(vcrc >> 8);
}

#endif
