/* What surrounds a transport packet on its way: one of four framings.
 *
 *     RoCEv2   Ethernet, VLAN tag, if configured | IPv4 | UDP 4791 | BTH .. pad | ICRC
 *     IB       LRH | GRH, if configured | BTH .. pad | ICRC | VCRC
 *
 * The transport writes BTH .. pad into a new frame and has it sealed; of an
 * arrived frame it is shown BTH .. pad, once every length and CRC is right.
 * All it knows of a framing is this interface. */
#ifndef EMU_NIC_FRAMING_H
#define EMU_NIC_FRAMING_H

#include "nic/nic_api.h"
#include "nic/packet.h"
#include "sim/frame.h"

/* What a queue pair sends, in order of precedence. */
enum traffic { TRAFFIC_CNP, TRAFFIC_ACKNOWLEDGE, TRAFFIC_DATA, TRAFFIC_KINDS };

enum { PATH_HEADER_MAX = 48 };

/* The way from one queue pair to the other: all that its packets have in common. */
struct path {
    uint8_t header[PATH_HEADER_MAX];
    uint8_t tos[TRAFFIC_KINDS]; /* RoCEv2 */
    uint8_t tc[TRAFFIC_KINDS];  /* priority or VL */
};

enum verdict {
    VERDICT_OK,
    VERDICT_OTHER,     /* not such a packet, or not for this NIC */
    VERDICT_MALFORMED, /* a length or a fixed field is wrong */
    VERDICT_VCRC,
    VERDICT_ICRC,
};

struct framing_ops {
    uint8_t kind;           /* enum frame_kind */
    uint32_t header_bytes;  /* before the BTH */
    uint32_t trailer_bytes; /* after the pad */

    void (*prepare)(struct path *path, const struct nic_config *own, const struct qp_config *config,
                    uint32_t qpn, const struct qp_remote *remote);
    /* BTH .. pad are in place, or the headers of these: writes what is before them, and
     * behind them where the frame is whole. */
    void (*seal)(const struct path *path, enum traffic traffic, struct frame *frame);
    /* The frame is of this kind. Fills `packet`, which points into it, when the verdict is OK.
     * CRCs are right in a frame that has none. */
    enum verdict (*open)(const struct nic_config *own, const struct frame *frame,
                         struct packet *packet);
};

extern const struct framing_ops framing_roce, framing_roce_tagged, framing_ib, framing_ib_global;

/* The bytes of a frame whose BTH .. pad are `body_bytes` long. */
static inline uint32_t framing_length(const struct framing_ops *framing, uint32_t body_bytes)
{
    return framing->header_bytes + body_bytes + framing->trailer_bytes;
}

#endif
