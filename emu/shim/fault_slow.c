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
    intake_set(intake, fault->config.rate_bps, fault->config.buffer_bytes, now);
}

static void count(struct fault *fault)
{
    const struct intake *before = &fault->healthy, *intake = intake_of(fault);
    fault->counts.packets_seen = intake->packets - before->packets;
    fault->counts.hits = intake->waited - before->waited;
    fault->counts.packets_dropped = intake->dropped - before->dropped;
}

static void end(struct fault *fault, picoseconds now)
{
    intake_set(intake_of(fault), fault->healthy.rate_bps, fault->healthy.buffer_bytes, now);
}

const struct fault_ops fault_slow_receiver = {.begin = begin, .end = end, .count = count};
