#include "nic/notification_point.h"

#include "nic/nic.h"
#include "nic/turns.h"

static void due(struct timer *timer, picoseconds now)
{
    struct notification_point *point = container_of(timer, struct notification_point, due);
    struct qp *qp = point->pending_qp;
    point->pending_qp = NULL;
    if (qp->state == QP_ERR)
        return;
    turns_join(qp, TRAFFIC_CNP);
    port_kick(&qp->nic->port, now);
}

void notification_point_init(struct qp *qp)
{
    qp->own_point = (struct notification_point){0};
    qp->notification_point = &qp->own_point;
    timer_init(&qp->own_point.due, due);
}

static bool shares_interval(const struct qp *qp, const struct qp *other)
{
    return qp->config.cnp.per == CNP_PER_PORT ||
           (qp->config.cnp.per == CNP_PER_ADDRESS && other->remote.address == qp->remote.address);
}

/* Another queue pair that shares this one's interval; NULL: none does. */
static struct qp *find_heir(const struct qp *qp)
{
    struct nic *nic = qp->nic;
    for (uint32_t i = 0; i < nic->qp_count; i++)
        if (&nic->qps[i] != qp && nic->qps[i].notification_point == &qp->own_point)
            return &nic->qps[i];
    return NULL;
}

/* The interval of `qp` becomes that of `heir`, for all that share it. */
static void bequeath(struct qp *qp, struct qp *heir)
{
    struct nic *nic = qp->nic;
    struct notification_point *from = &qp->own_point, *to = &heir->own_point;
    to->next_at = from->next_at;
    to->pending_qp = from->pending_qp;
    if (to->pending_qp)
        timer_set(nic->clock, &to->due, from->due.at);
    for (uint32_t i = 0; i < nic->qp_count; i++)
        if (nic->qps[i].notification_point == from)
            nic->qps[i].notification_point = to;
}

void notification_point_leave(struct qp *qp)
{
    struct notification_point *point = qp->notification_point;
    if (point->pending_qp == qp) {
        point->pending_qp = NULL;
        timer_cancel(&point->due);
    }
    struct qp *heir = find_heir(qp);
    if (heir)
        bequeath(qp, heir);
    timer_remove(qp->nic->clock, &qp->own_point.due);
    notification_point_init(qp);
}

void notification_point_join(struct qp *qp)
{
    struct nic *nic = qp->nic;
    notification_point_leave(qp);
    for (uint32_t i = 0; i < nic->qp_count; i++)
        if (nic->qps[i].state == QP_RTS && shares_interval(qp, &nic->qps[i])) {
            qp->notification_point = nic->qps[i].notification_point;
            return;
        }
}

static void make_cnp(struct qp *qp, picoseconds now)
{
    const struct cnp_config *config = &qp->config.cnp;
    struct notification_point *point = qp->notification_point;
    picoseconds at = now + config->delay_ps;
    if (point->pending_qp || (at < point->next_at && !config->keeps_marks))
        return;
    if (at < point->next_at)
        at = point->next_at;
    point->next_at = at + config->interval_ps;
    if (at == now) {
        turns_join(qp, TRAFFIC_CNP);
    } else {
        point->pending_qp = qp;
        timer_set(qp->nic->clock, &point->due, at);
    }
}

/* Whether an ACK, NAK or response will follow, which can carry BECN. */
static bool is_answered(const struct qp *qp, const struct packet *packet)
{
    return qp->config.transport == TRANSPORT_RC && packet->type != PACKET_READ_RESPONSE;
}

void notification_point_see(struct qp *qp, const struct packet *packet, picoseconds now)
{
    int becn = qp->config.cnp.becn;
    qp->nic->counters.np_ecn_marked_roce_packets++;
    if (becn == BECN_IN_ACK && is_answered(qp, packet))
        qp->responses.becn_owed = true;
    else if (becn != BECN_NONE)
        make_cnp(qp, now);
}
