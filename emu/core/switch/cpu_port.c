#include "switch/cpu_port.h"

#include <string.h>

#include "headers/ipv6.h"
#include "switch/egress.h"

bool cpu_port_takes(const struct fabric_switch *sw, const struct frame *frame)
{
    uint32_t header = sw->to_cpu ? ipv6_offset(frame->bytes, frame->stored) : 0;
    return header && ipv6_is_to_link_local(frame->bytes + header);
}

void cpu_port_send(struct fabric_switch *sw, uint32_t number, const uint8_t *bytes, uint32_t length,
                   picoseconds now)
{
    bool fits = length <= sw->pool->large.room;
    struct frame *frame = fits ? frame_new(sw->pool, FRAME_ETHERNET, length) : NULL;
    if (!frame)
        return;
    memcpy(frame->bytes, bytes, length);
    frame->tc = sw->cpu_class;
    frame->tail_at = now;
    frame->out_port = (uint16_t)number;
    switch_port(sw, number)->counters->from_cpu++;
    egress_push(sw, frame, now);
}
