/* A port of a switch that marks by other curves than it should, such as with Kmin above XOFF, where
 * PFC acts and no sender ever hears of congestion. Queues that do not mark still do not. The
 * curves are those of whoever marks: the switch itself, or eBPF, which may see one half old and
 * half new for a moment.
 *
 * What it sees are packets that the port sends, and hits are those among them that were marked. */
#include <string.h>

#include "fault/fault.h"
#include "switch/switch.h"

static struct wred *curves_of(const struct fault *fault)
{
    struct switch_port *out = switch_port_of(fault->port);
    return out->marking || !out->external_wred ? out->wred : out->external_wred;
}

static uint64_t sent(const struct fault *fault)
{
    uint64_t packets = 0;
    for (unsigned priority = 0; priority < PRIORITIES; priority++)
        packets += fault->port->counters.of_class[priority].tx_packets;
    return packets;
}

static uint64_t marked(const struct fault *fault)
{
    uint64_t packets = 0;
    for (unsigned priority = 0; priority < PRIORITIES; priority++)
        packets += switch_port_of(fault->port)->counters.ecn_marked[priority];
    return packets;
}

static void begin(struct fault *fault, picoseconds now)
{
    (void)now;
    const struct fault_config *wrong = &fault->config;
    struct wred *curves = curves_of(fault);
    fault->seen_before = sent(fault);
    fault->before = marked(fault);
    memcpy(fault->healthy_curves, curves, sizeof fault->healthy_curves);
    for (unsigned queue = 0; queue < PRIORITIES; queue++) {
        curves[queue].kmin_bytes = wrong->kmin_bytes[queue];
        curves[queue].kmax_bytes = wrong->kmax_bytes[queue];
        curves[queue].pmax_2_32 = wrong->pmax_2_32[queue];
    }
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = sent(fault) - fault->seen_before;
    fault->counts.hits = marked(fault) - fault->before;
}

static void end(struct fault *fault, picoseconds now)
{
    (void)now;
    memcpy(curves_of(fault), fault->healthy_curves, sizeof fault->healthy_curves);
}

const struct fault_ops fault_wrong_ecn = {.begin = begin, .end = end, .count = count, .sets = true};
