#include "qp.h"

#include <assert.h>

#include "nic.h"
#include "psn.h"
#include "requester.h"
#include "responder.h"

enum { RETRY_MAX = 7, TIMER_CODE_MAX = 31, SLS = 16 };

static bool config_is_right(const struct qp_config *config)
{
    bool power_of_two = (config->mtu & (config->mtu - 1)) == 0;
    return power_of_two && config->mtu >= MTU_MIN && config->mtu <= MTU_MAX &&
           config->psn <= PSN_MASK && config->window <= PSN_WINDOW && config->dscp < DSCPS &&
           config->ack_dscp < DSCPS && config->sl < SLS && config->timeout <= TIMER_CODE_MAX &&
           config->min_rnr_timer <= TIMER_CODE_MAX && config->retry_count <= RETRY_MAX &&
           config->rnr_retry <= RETRY_MAX;
}

static void wake(struct timer *timer, picoseconds now)
{
    struct qp *qp = container_of(timer, struct qp, wake);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
}

bool qp_init(struct qp *qp, struct nic *nic, uint32_t qpn, const struct qp_config *config)
{
    const struct cc_algorithm *algorithm = cc_named(config->cc);
    if (!algorithm || !config_is_right(config))
        return false;
    *qp = (struct qp){.nic = nic, .qpn = qpn, .state = QP_INIT, .config = *config};
    qp->config.cc = algorithm->name;
    qp->cc = (struct cc){.algorithm = algorithm, .clock = nic->clock};
    if (!algorithm->init(&qp->cc, config))
        return false;
    timer_init(&qp->wake, wake);
    notification_init(qp);
    requester_init(qp);
    return true;
}

void qp_connect(struct qp *qp, const struct qp_remote *remote)
{
    struct nic *nic = qp->nic;
    assert(qp->state == QP_INIT && nic->port.line.rate_bps > 0);
    qp->remote = *remote;
    qp->cc.line_rate_bps = nic->port.line.rate_bps;
    qp->responder.expected = remote->psn & PSN_MASK;
    nic->framing->prepare(&qp->path, &nic->config, &qp->config, qp->qpn, remote);
    notification_join(qp);
    qp->state = QP_READY;
}

static struct qp_remote as_remote(const struct qp *qp)
{
    return (struct qp_remote){
        .qpn = qp->qpn, .psn = qp->config.psn, .address = qp->nic->config.address};
}

void qp_connect_pair(struct qp *one, struct qp *other)
{
    struct qp_remote towards_one = as_remote(one), towards_other = as_remote(other);
    qp_connect(one, &towards_other);
    qp_connect(other, &towards_one);
    one->peer = other;
    other->peer = one;
}

uint32_t qp_number(const struct qp *qp)
{
    return qp->qpn;
}

uint64_t qp_rate_bps(const struct qp *qp)
{
    return qp->cc.rate_bps ? qp->cc.rate_bps : qp->nic->port.line.rate_bps;
}

struct qp_view qp_look(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    uint64_t first = qp->config.psn, unacked = requester->unacked;
    int32_t ahead = psn_ahead(qp->peer->responder.expected, unacked & PSN_MASK);
    return (struct qp_view){.failed = qp->state == QP_ERROR,
                            .posted = requester->posted_end - first,
                            .sent = requester->sent_end - first,
                            .next = requester->next - first,
                            .acknowledged = unacked - first,
                            .received = unacked - first + (uint64_t)ahead};
}

void qp_wake(struct qp *qp, picoseconds now)
{
    if (!requester_has_data(qp) || qp->turns[TRAFFIC_DATA].waiting)
        return;
    if (now < qp->not_before)
        timer_set(qp->nic->clock, &qp->wake, qp->not_before);
    else
        nic_queue(qp, TRAFFIC_DATA);
}

void qp_fail(struct qp *qp, enum status status, picoseconds now)
{
    qp->state = QP_ERROR;
    timer_cancel(&qp->wake);
    cc_stop(&qp->cc);
    qp->responder.receives = qp->responder.last_receive = NULL;
    requester_flush(qp, status, now);
}
