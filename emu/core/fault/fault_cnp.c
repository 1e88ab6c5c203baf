/* A NIC whose reaction point is off, or was never told of CNPs: it ignores them, and sends at line
 * rate however much is marked. Rates that were lowered before are forgotten. Its CNPs count as
 * ignored (rp_cnp_ignored), and are what it sees and hits. */
#include "fault/fault.h"
#include "nic/nic.h"

static struct nic *nic_of(const struct fault *fault)
{
    return fault->port->owner;
}

/* What it leaves between two packets at its old rate is no longer waited for. */
static void release(struct qp *qp, picoseconds now)
{
    cc_stop(&qp->cc);
    if (qp->not_before > now)
        qp->not_before = now;
    qp_wake(qp, now);
}

static void begin(struct fault *fault, picoseconds now)
{
    struct nic *nic = nic_of(fault);
    fault->before = nic->counters.rp_cnp_ignored;
    nic->ignores_cnps = true;
    for (uint32_t i = 0; i < nic->qp_count; i++)
        release(&nic->qps[i], now);
    port_kick(fault->port, now);
}

static void count(struct fault *fault)
{
    fault->counts.hits = nic_of(fault)->counters.rp_cnp_ignored - fault->before;
    fault->counts.packets_seen = fault->counts.hits;
}

static void end(struct fault *fault, picoseconds now)
{
    (void)now;
    nic_of(fault)->ignores_cnps = false;
}

const struct fault_ops fault_ignored_cnps = {
    .begin = begin, .end = end, .count = count, .sets = true};
