/* A host that takes packets in more slowly than it does otherwise: its NIC is
 * throttled (nic/rx_throttle.h). */
#include "fault/fault.h"
#include "nic/nic.h"

static struct rx_throttle *rx_throttle_of(const struct fault *fault)
{
    struct nic *nic = fault->port->owner;
    return &nic->rx_throttle;
}

static void begin(struct fault *fault, picoseconds now)
{
    struct rx_throttle *throttle = rx_throttle_of(fault);
    fault->healthy = *throttle;
    throttle->waited = &fault->counts.hits;
    throttle->dropped = &fault->counts.packets_dropped;
    rx_throttle_set(throttle, fault->config.rate_bps, fault->config.buffer_bytes, now);
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = rx_throttle_of(fault)->packets - fault->healthy.packets;
}

static void end(struct fault *fault, picoseconds now)
{
    struct rx_throttle *throttle = rx_throttle_of(fault);
    const struct rx_throttle *healthy = &fault->healthy;
    throttle->waited = healthy->waited;
    throttle->dropped = healthy->dropped;
    rx_throttle_set(throttle, healthy->rate_bps, healthy->buffer_bytes, now);
}

const struct fault_ops fault_slow_receiver = {
    .begin = begin, .end = end, .count = count, .sets = true};
