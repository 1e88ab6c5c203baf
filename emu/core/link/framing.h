/* Framing: what a link's frames look like. A port knows its framing by this table only.
 *
 *                   Ethernet                              InfiniBand
 *     packet        addresses, VLAN tag, payload          LRH .. VCRC
 *     its class     by DSCP or PCP (qos_map.h)            the VL in its first byte
 *     flow control  MAC control frame: opcode, message    link packet: the message, 6 bytes
 *
 * Which flow control uses the link, and how a switch finds a packet's way, are choices of their own
 * (flow_control.h, forwarding.h in the switch). */
#ifndef EMU_LINK_FRAMING_H
#define EMU_LINK_FRAMING_H

#include "sim/frame.h"

enum framing { FRAMING_ETHERNET, FRAMING_INFINIBAND, FRAMINGS };

/* What a flow control's message is: the opcode of a MAC control frame (802.3, annex 31A). */
enum control_opcode {
    CONTROL_PAUSE = 0x0001,
    CONTROL_PFC = 0x0101,
    CONTROL_CREDITS = 0x0200, /* not assigned by IEEE */
};

/* What has arrived. */
enum arrival {
    ARRIVAL_PACKET,    /* whole as far as its headers go, and its class is known */
    ARRIVAL_CONTROL,   /* a frame of flow control, or one that at least ends at this port */
    ARRIVAL_MALFORMED, /* too short, no such lane, or the other framing's */
};

struct port;

struct link_framing_ops {
    uint32_t header_bytes; /* what a cut-through switch must see before it can decide */
    bool class_changes;    /* a packet may have another class on its next link */

    /* Looks at a frame that has arrived; no other header may be read before. Sets the class of a
     * packet. */
    enum arrival (*inspect)(const struct port *port, struct frame *frame);
    /* Sets the class of a frame, which may be no packet. */
    void (*classify)(const struct port *port, struct frame *frame);

    /* A new frame for a message of flow control; `message` is where its bytes belong. NULL: there
     * is no memory. */
    struct frame *(*control_frame)(const struct port *port, enum control_opcode opcode,
                                   uint32_t message_bytes, uint8_t **message);
    /* The message with this opcode in a frame; NULL when there is none, or it is not so long. */
    const uint8_t *(*control_message)(const struct frame *frame, enum control_opcode opcode,
                                      uint32_t message_bytes);
};

extern const struct link_framing_ops link_framing_ethernet, link_framing_infiniband;

/* By enum framing. */
extern const struct link_framing_ops *const link_framings[FRAMINGS];

/* False for what flow control says: pause frames, credit updates. */
bool is_packet(const struct frame *frame);
/* True for any MAC control frame: it ends at this port, understood or not. */
bool is_mac_control(const struct frame *frame);

#endif
