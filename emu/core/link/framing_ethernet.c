/* Ethernet frames. Flow control messages are MAC control frames (IEEE 802.3, clause 31), which are
 * never tagged and never forwarded:
 *
 *     01:80:C2:00:00:01 | source | 8808 | opcode 16 | message | pad to 60 */
#include <string.h>

#include "link/port.h"

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    OFFSET_SOURCE = 6,
    OFFSET_ETHERTYPE = 12,
    OFFSET_OPCODE = 14,
    OFFSET_MESSAGE = 16,
    HEADER_BYTES = 64, /* of the longest IPv4 header, and of UDP behind it */
};

static const uint8_t mac_control_address[6] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

static uint16_t read16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void write16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

bool is_mac_control(const struct frame *frame)
{
    return frame->stored >= OFFSET_OPCODE &&
           read16(frame->bytes + OFFSET_ETHERTYPE) == ETHERTYPE_MAC_CONTROL;
}

static void classify(const struct port *port, struct frame *frame)
{
    if (!port->qos_map || frame->kind != FRAME_ETHERNET)
        return;
    frame->ip = (uint8_t)ipv4_offset(frame->bytes, frame->stored);
    frame->tc = class_of(port->qos_map, frame);
}

static enum arrival inspect(const struct port *port, struct frame *frame)
{
    if (frame->kind != FRAME_ETHERNET)
        return ARRIVAL_MALFORMED;
    if (is_mac_control(frame))
        return ARRIVAL_CONTROL;
    if (!ethernet_header_is_whole(frame->bytes, frame->stored))
        return ARRIVAL_MALFORMED;
    classify(port, frame);
    return ARRIVAL_PACKET;
}

static struct frame *control_frame(const struct port *port, enum control_opcode opcode,
                                   uint32_t message_bytes, uint8_t **message)
{
    assert(OFFSET_MESSAGE + message_bytes <= ETHERNET_MIN);
    struct frame *frame = frame_new(port->pool, FRAME_ETHERNET, ETHERNET_MIN);
    if (!frame)
        return NULL;
    memset(frame->bytes, 0, ETHERNET_MIN);
    memcpy(frame->bytes, mac_control_address, sizeof mac_control_address);
    memcpy(frame->bytes + OFFSET_SOURCE, port->mac, sizeof port->mac);
    write16(frame->bytes + OFFSET_ETHERTYPE, ETHERTYPE_MAC_CONTROL);
    write16(frame->bytes + OFFSET_OPCODE, (uint16_t)opcode);
    *message = frame->bytes + OFFSET_MESSAGE;
    return frame;
}

static uint8_t *control_message(const struct frame *frame, enum control_opcode opcode,
                                uint32_t message_bytes)
{
    bool is_there = frame->stored >= OFFSET_MESSAGE + message_bytes && is_mac_control(frame) &&
                    read16(frame->bytes + OFFSET_OPCODE) == opcode;
    return is_there ? frame->bytes + OFFSET_MESSAGE : NULL;
}

const struct link_framing_ops link_framing_ethernet = {
    .header_bytes = HEADER_BYTES,
    .least_wire_bytes = ETHERNET_MIN + ETHERNET_OVERHEAD,
    .inspect = inspect,
    .classify = classify,
    .control_frame = control_frame,
    .control_message = control_message,
};
