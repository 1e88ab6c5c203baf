/* A port of a switch that keeps less headroom than comes after a pause was sent (buffer.h): the
 * rest of it is dropped, lossless as it is. The shared pool is as large as before. What already
 * is in the headroom stays there until it leaves.
 *
 * What it sees are packets of lossless priorities that come in by the port, and hits are those
 * that find no room: the switch counts them as dropped. */
#include "fault/fault.h"
#include "switch/switch.h"

static uint64_t came_in(const struct switch_port *in)
{
    uint64_t packets = 0;
    for (unsigned left = in->pfc.priorities; left; left &= left - 1)
        packets += in->port.counters.of_class[__builtin_ctz(left)].rx_packets;
    return packets;
}

static uint64_t found_no_room(const struct switch_port *in)
{
    uint64_t packets = 0;
    for (unsigned left = in->pfc.priorities; left; left &= left - 1)
        packets += in->counters.rx_buf_discard[__builtin_ctz(left)];
    return packets;
}

static void begin(struct fault *fault, picoseconds now)
{
    (void)now;
    struct switch_port *in = switch_port_of(fault->port);
    fault->seen_before = came_in(in);
    fault->before = found_no_room(in);
    fault->healthy_headroom = in->pfc.headroom_bytes;
    in->pfc.headroom_bytes = fault->config.headroom_bytes;
}

static void count(struct fault *fault)
{
    const struct switch_port *in = switch_port_of(fault->port);
    fault->counts.packets_seen = came_in(in) - fault->seen_before;
    fault->counts.hits = found_no_room(in) - fault->before;
}

static void end(struct fault *fault, picoseconds now)
{
    (void)now;
    switch_port_of(fault->port)->pfc.headroom_bytes = fault->healthy_headroom;
}

const struct fault_ops fault_small_headroom = {
    .begin = begin, .end = end, .count = count, .sets = true};
