/* Framing: the format of the frames on a link. A port uses its framing only through this table.
 *
 *                   Ethernet                              InfiniBand
 *     packet        addresses, VLAN tag, payload          LRH .. VCRC
 *     its class     by DSCP or PCP (qos_map.h)            the VL in its first byte
 *     flow control  MAC control frame: opcode, message    link packet: the message, 6 bytes
 *
 * The flow control of the link and the forwarding of a switch are separate choices (flow_control.h;
 * forwarding.h in the switch). */
#ifndef EMU_LINK_FRAMING_H
#define EMU_LINK_FRAMING_H

#include "sim/frame.h"

enum framing { FRAMING_ETHERNET, FRAMING_INFINIBAND, FRAMINGS };

/* The kinds of flow control messages, by the opcode of a MAC control frame (802.3, annex 31A). */
enum control_opcode {
    CONTROL_PAUSE = 0x0001,
    CONTROL_PFC = 0x0101,
    CONTROL_CREDITS = 0x0200, /* not assigned by IEEE */
};

/* The kinds of arriving frames. */
enum arrival {
    ARRIVAL_PACKET,    /* its headers are complete and its class is known */
    ARRIVAL_CONTROL,   /* a frame of flow control, or another that ends at this port */
    ARRIVAL_MALFORMED, /* too short, on a lane that does not exist, or of the other framing */
};

struct port;

struct link_framing_ops {
    uint8_t header_bytes;     /* bytes that a cut-through switch needs to forward a packet */
    uint8_t least_wire_bytes; /* for which the shortest frame occupies the line */
    bool class_changes;       /* a packet may have another class on its next link */

    /* Checks a frame that has arrived, and sets the class of a packet. No header of the frame may
     * be read before. */
    enum arrival (*inspect)(const struct port *port, struct frame *frame);
    /* Sets the class of a frame that was not checked yet and may be malformed. */
    void (*classify)(const struct port *port, struct frame *frame);

    /* A new frame for a message of flow control, whose bytes belong at `message`. Returns NULL when
     * there is no memory. */
    struct frame *(*control_frame)(const struct port *port, enum control_opcode opcode,
                                   uint32_t message_bytes, uint8_t **message);
    /* The message in a frame; NULL when its opcode or its length differs. */
    uint8_t *(*control_message)(const struct frame *frame, enum control_opcode opcode,
                                uint32_t message_bytes);
};

extern const struct link_framing_ops link_framing_ethernet, link_framing_infiniband;

/* Indexed by enum framing. */
extern const struct link_framing_ops *const link_framings[FRAMINGS];

/* False for frames of flow control: pause frames, credit updates. */
bool is_packet(const struct frame *frame);
/* True for any MAC control frame. It ends at this port, even if its opcode is unknown. */
bool is_mac_control(const struct frame *frame);

#endif
