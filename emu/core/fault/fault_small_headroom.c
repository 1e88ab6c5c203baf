/* Small headroom: a port of a switch keeps less headroom than arrives after it has sent a pause
 * (buffer.h), and drops lossless packets that find no room. The shared pool keeps its size. Packets
 * that are in the headroom already stay there until they leave.
 *
 * The fault sees packets of lossless priorities that the port receives. Hits are those that the
 * switch drops because they find no room. */
#include "fault/fault.h"
#include "switch/switch_state.h"

struct small_headroom {
    struct fault fault;
    uint32_t headroom_bytes; /* of each lossless priority of the port */
    uint32_t healthy_bytes;
    uint64_t received_before, dropped_before;
};

static struct small_headroom *headroom_of(struct fault *fault)
{
    return container_of(fault, struct small_headroom, fault);
}

static uint64_t received(const struct switch_port *in)
{
    uint64_t packets = 0;
    for (unsigned left = in->pfc.priorities; left; left &= left - 1)
        packets += in->port.traffic[__builtin_ctz(left)].rx_packets;
    return packets;
}

static uint64_t dropped(const struct switch_port *in)
{
    uint64_t packets = 0;
    for (unsigned left = in->pfc.priorities; left; left &= left - 1)
        packets += in->counters->rx_buf_discard[__builtin_ctz(left)];
    return packets;
}

static void inject(struct fault *fault, picoseconds now)
{
    (void)now;
    struct small_headroom *small = headroom_of(fault);
    struct switch_port *in = switch_port_of(fault->port);
    small->received_before = received(in);
    small->dropped_before = dropped(in);
    small->healthy_bytes = in->pfc.headroom_bytes;
    in->pfc.headroom_bytes = small->headroom_bytes;
}

static void count(struct fault *fault)
{
    const struct small_headroom *small = headroom_of(fault);
    const struct switch_port *in = switch_port_of(fault->port);
    fault->counts.packets_seen = received(in) - small->received_before;
    fault->counts.hits = dropped(in) - small->dropped_before;
}

static void clear(struct fault *fault, picoseconds now)
{
    (void)now;
    switch_port_of(fault->port)->pfc.headroom_bytes = headroom_of(fault)->healthy_bytes;
}

static const struct parameter_field parameters[] = {PARAMETER_FIELD(small_headroom, headroom_bytes),
                                                    {0}};

static const struct fault_ops small_headroom = {
    .name = "small-headroom",
    .bytes = sizeof(struct small_headroom),
    .parameters = parameters,
    .exclusive = true,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, small_headroom)
