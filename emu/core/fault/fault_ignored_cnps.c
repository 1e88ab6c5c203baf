/* Ignored CNPs: a NIC whose reaction point is off sends at line rate however many packets are
 * marked. It forgets rates that were lowered before. The fault sees and hits the CNPs that the NIC
 * counts as ignored (rp_cnp_ignored). */
#include "fault/fault.h"
#include "nic/nic.h"
#include "nic/pacing.h"
#include "nic/qp_table.h"

struct ignored_cnps {
    struct fault fault;
    uint64_t ignored_before;
};

static struct nic *nic_of(const struct fault *fault)
{
    return fault->port->owner;
}

/* The queue pair no longer waits for the gap between packets that its old rate required. */
static void send_at_line_rate(struct qp *qp, picoseconds now)
{
    cc_stop(&qp->cc);
    if (qp->not_before > now)
        qp->not_before = now;
    qp_wake(qp, now);
}

static void inject(struct fault *fault, picoseconds now)
{
    struct nic *nic = nic_of(fault);
    container_of(fault, struct ignored_cnps, fault)->ignored_before = nic->counters.rp_cnp_ignored;
    nic->ignores_cnps = true;
    for (uint32_t i = 0; i < nic->qp_count; i++)
        if (qp_exists(&nic->qps[i]))
            send_at_line_rate(&nic->qps[i], now);
    port_kick(fault->port, now);
}

static void count(struct fault *fault)
{
    const struct ignored_cnps *own = container_of(fault, struct ignored_cnps, fault);
    fault->counts.hits = nic_of(fault)->counters.rp_cnp_ignored - own->ignored_before;
    fault->counts.packets_seen = fault->counts.hits;
}

static void clear(struct fault *fault, picoseconds now)
{
    (void)now;
    nic_of(fault)->ignores_cnps = false;
}

static const struct fault_ops ignored_cnps = {
    .name = "ignored-cnps",
    .bytes = sizeof(struct ignored_cnps),
    .exclusive = true,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, ignored_cnps)
