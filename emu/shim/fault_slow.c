/* A host that takes packets in more slowly than it does otherwise: its NIC's intake
 * has another rate meanwhile (traffic/rnic/intake.h). */
#include "fault.h"
#include "nic.h"

static struct intake *intake_of(const struct fault *fault)
{
    struct nic *nic = fault->port->owner;
    return &nic->intake;
}

static void begin(struct fault *fault, picoseconds now)
{
    struct intake *intake = intake_of(fault);
    fault->healthy = *intake;
    intake->waited = &fault->counts.hits;
    intake->dropped = &fault->counts.packets_dropped;
    intake_set(intake, fault->config.rate_bps, fault->config.buffer_bytes, now);
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = intake_of(fault)->packets - fault->healthy.packets;
}

static void end(struct fault *fault, picoseconds now)
{
    struct intake *intake = intake_of(fault);
    const struct intake *healthy = &fault->healthy;
    intake->waited = healthy->waited;
    intake->dropped = healthy->dropped;
    intake_set(intake, healthy->rate_bps, healthy->buffer_bytes, now);
}

const struct fault_ops fault_slow_receiver = {
    .begin = begin, .end = end, .count = count, .sets = true};
