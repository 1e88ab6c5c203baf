/* Slow receiver: a host's NIC receives packets at a lower rate than its link
 * (nic/rx_throttle.h). */
#include "fault/fault.h"
#include "nic/nic.h"

struct slow_receiver {
    struct fault fault;
    uint64_t rate_bps;
    uint32_t buffer_bytes; /* for waiting packets of each priority */
    struct rx_throttle healthy;
};

static struct slow_receiver *slow_of(struct fault *fault)
{
    return container_of(fault, struct slow_receiver, fault);
}

static struct rx_throttle *rx_throttle_of(const struct fault *fault)
{
    struct nic *nic = fault->port->owner;
    return &nic->rx_throttle;
}

static void inject(struct fault *fault, picoseconds now)
{
    struct slow_receiver *slow = slow_of(fault);
    struct rx_throttle *throttle = rx_throttle_of(fault);
    slow->healthy = *throttle;
    throttle->waited = &fault->counts.hits;
    throttle->dropped = &fault->counts.packets_dropped;
    rx_throttle_set(throttle, slow->rate_bps, slow->buffer_bytes, now);
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = rx_throttle_of(fault)->packets - slow_of(fault)->healthy.packets;
}

static void clear(struct fault *fault, picoseconds now)
{
    struct rx_throttle *throttle = rx_throttle_of(fault);
    const struct rx_throttle *healthy = &slow_of(fault)->healthy;
    throttle->waited = healthy->waited;
    throttle->dropped = healthy->dropped;
    rx_throttle_set(throttle, healthy->rate_bps, healthy->buffer_bytes, now);
}

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(slow_receiver, rate_bps), PARAMETER_FIELD(slow_receiver, buffer_bytes), {0}};

static const struct fault_ops slow_receiver = {
    .name = "slow-receiver",
    .bytes = sizeof(struct slow_receiver),
    .parameters = parameters,
    .exclusive = true,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, slow_receiver)
