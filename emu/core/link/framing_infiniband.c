/* InfiniBand packets and link packets. A link packet has no opcode, since a link has only one flow
 * control. */
#include "link/port.h"

enum { HEADER_BYTES = LRH_BYTES + IB_BTH_BYTES };

/* Nothing to do: the class is the VL, which was read from the first byte already. */
static void classify(const struct port *port, struct frame *frame)
{
    (void)port;
    (void)frame;
}

/* The data packet check (IBTA vol 1, 7.4): whether the packet is long enough for its headers and
 * CRCs, and uses a lane of this port. */
static bool is_well_formed(const struct port *port, const struct frame *frame)
{
    bool has_lane = !port->vls || frame->tc < port->vls || frame->tc == VL_MANAGEMENT;
    return has_lane && lrh_packet_is_whole(frame);
}

static enum arrival inspect(const struct port *port, struct frame *frame)
{
    if (frame->kind == FRAME_IB_LINK)
        return ARRIVAL_CONTROL;
    bool fits = frame->kind == FRAME_IB && is_well_formed(port, frame);
    return fits ? ARRIVAL_PACKET : ARRIVAL_MALFORMED;
}

static struct frame *control_frame(const struct port *port, enum control_opcode opcode,
                                   uint32_t message_bytes, uint8_t **message)
{
    (void)opcode;
    struct frame *frame = frame_new(port->pool, FRAME_IB_LINK, message_bytes);
    *message = frame ? frame->bytes : NULL;
    return frame;
}

static uint8_t *control_message(const struct frame *frame, enum control_opcode opcode,
                                uint32_t message_bytes)
{
    (void)opcode;
    bool is_there = frame->kind == FRAME_IB_LINK && frame->stored == message_bytes;
    return is_there ? frame->bytes : NULL;
}

const struct link_framing_ops link_framing_infiniband = {
    .header_bytes = HEADER_BYTES,
    .least_wire_bytes = FLOW_CONTROL_BYTES,
    .class_changes = true,
    .inspect = inspect,
    .classify = classify,
    .control_frame = control_frame,
    .control_message = control_message,
};
