/* A NIC that has gone mad and pauses its switch without end: the pause is told
 * again before it runs out, as flow control does it (port_pause_peer). Seen in the
 * field: Guo et al., SIGCOMM'16, 4.3. */
#include "fault/fault.h"

static uint64_t told(const struct fault *fault)
{
    return fault->port->counters.tx_pause[fault->config.priority];
}

static void count(struct fault *fault)
{
    fault->counts.hits += told(fault) - fault->before;
    fault->before = told(fault);
}

static void begin(struct fault *fault, picoseconds now)
{
    fault->before = told(fault);
    port_pause_peer(fault->port, fault->config.priority, true, now);
}

static void end(struct fault *fault, picoseconds now)
{
    port_pause_peer(fault->port, fault->config.priority, false, now);
}

const struct fault_ops fault_pause_storm = {.begin = begin, .end = end, .count = count};
