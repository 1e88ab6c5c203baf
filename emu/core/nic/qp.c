#include "nic/qp.h"

#include <assert.h>

#include "nic/completer.h"
#include "nic/nic.h"
#include "nic/psn.h"
#include "nic/qp_state.h"
#include "nic/receive_queue.h"
#include "nic/recovery.h"
#include "nic/requester.h"
#include "nic/responder.h"
#include "nic/response_queue.h"
#include "nic/send_queue.h"

enum { RETRY_MAX = 7, TIMER_CODE_MAX = 31 };

/* ---- set-up ------------------------------------------------------------------------ */

static bool config_is_valid(const struct qp_config *config)
{
    bool power_of_two = (config->mtu & (config->mtu - 1)) == 0;
    return power_of_two && config->mtu >= MTU_MIN && config->mtu <= MTU_MAX &&
           config->transport >= TRANSPORT_RC && config->transport <= TRANSPORT_UD &&
           config->psn <= PSN_MASK && config->window <= PSN_WINDOW && config->dscp < DSCPS &&
           config->ack_dscp < DSCPS && config->cnp_dscp < DSCPS && config->cnp_priority < PCPS &&
           config->sl < SLS && config->timeout <= TIMER_CODE_MAX &&
           config->min_rnr_timer <= TIMER_CODE_MAX && config->retry_count <= RETRY_MAX &&
           config->rnr_retry <= RETRY_MAX;
}

static void rate_changed(struct cc *cc);

static void wake(struct timer *timer, picoseconds now)
{
    struct qp *qp = container_of(timer, struct qp, wake);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
}

static bool make_room(struct qp *qp)
{
    return response_queue_init(qp) && (!qp->recovery->init || qp->recovery->init(qp)) &&
           (!qp->cc.algorithm->needs_rtt ||
            send_times_init(&qp->requester.send_times, qp->nic->arena));
}

static void begin_at_first_psn(struct qp *qp)
{
    requester_init(qp);
    if (qp->recovery->reset)
        qp->recovery->reset(qp);
}

static void start_afresh(struct qp *qp)
{
    qp->responder = (struct responder){.failing = qp->responder.failing,
                                       .recovery_priv = qp->responder.recovery_priv};
    response_queue_reset(qp);
    begin_at_first_psn(qp);
}

bool qp_init(struct qp *qp, struct nic *nic, uint32_t qpn, const struct qp_config *config)
{
    const struct recovery *recovery = recovery_named(config->recovery);
    *qp = (struct qp){.nic = nic, .qpn = qpn, .state = QP_RESET, .config = *config};
    if (!recovery || !config_is_valid(config))
        return false;
    qp->config.recovery = recovery->name;
    qp->config.pkey = config->pkey ? config->pkey : PKEY_DEFAULT;
    qp->recovery = recovery;
    if (!cc_init(&qp->cc, nic->arena, nic->clock, &config->cc) || !make_room(qp))
        return false;
    qp->cc.changed = rate_changed;
    timer_init(&qp->wake, wake);
    notification_point_init(qp);
    completer_init(qp);
    responder_init(qp);
    start_afresh(qp);
    return true;
}

/* ---- states ------------------------------------------------------------------------- */

enum qp_state qp_state(const struct qp *qp)
{
    return qp->state;
}

static void stop(struct qp *qp, enum status status, picoseconds now)
{
    timer_cancel(&qp->wake);
    timer_cancel(&qp->responder.failing);
    cc_stop(&qp->cc);
    if (qp->recovery->reset)
        qp->recovery->reset(qp);
    send_queue_flush(qp, status, now);
    enum status rest = status == STATUS_CANCELLED ? status : STATUS_WR_FLUSH_ERR;
    receive_queue_flush(qp, rest, now);
}

void qp_fail(struct qp *qp, enum status status, picoseconds now)
{
    qp->state = QP_ERR;
    response_queue_forget(qp);
    stop(qp, status, now);
}

void qp_fail_answering(struct qp *qp, picoseconds now)
{
    qp->state = QP_ERR;
    stop(qp, STATUS_WR_FLUSH_ERR, now);
    qp_wake(qp, now);
}

bool qp_may_modify(const struct qp *qp, enum qp_state to)
{
    return qp_state_allows(qp->state, to);
}

bool qp_modify(struct qp *qp, enum qp_state to, picoseconds now)
{
    if (!qp_may_modify(qp, to))
        return false;
    qp->state = to;
    if (to == QP_ERR || to == QP_RESET) {
        response_queue_forget(qp);
        stop(qp, to == QP_ERR ? STATUS_WR_FLUSH_ERR : STATUS_CANCELLED, now);
    }
    if (to == QP_RESET)
        start_afresh(qp);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
    return true;
}

void qp_set_remote(struct qp *qp, const struct qp_remote *remote)
{
    struct nic *nic = qp->nic;
    assert(qp->state <= QP_INIT && nic->port.line.rate_bps > 0);
    qp->remote = *remote;
    cc_connected(&qp->cc, nic->port.line.rate_bps);
    qp->responder.expected = remote->psn & PSN_MASK;
    nic->framing->prepare(&qp->path, &nic->config, &qp->config, qp->qpn, remote);
    notification_point_join(qp);
}

void qp_connect(struct qp *qp, const struct qp_remote *remote)
{
    assert(qp->state == QP_RESET);
    qp_set_remote(qp, remote);
    qp->state = QP_RTS;
}

/* What belongs to the connection is settled with it, ... */
static bool keeps_connection(const struct qp_config *own, const struct qp_config *to)
{
    return own->psn == to->psn && own->mtu == to->mtu && own->sl == to->sl;
}

/* ... and what sending goes by, until it is drained. */
static bool keeps_limits(const struct qp_config *own, const struct qp_config *to)
{
    return own->timeout == to->timeout && own->retry_count == to->retry_count &&
           own->rnr_retry == to->rnr_retry && own->max_rd_atomic == to->max_rd_atomic &&
           own->max_dest_rd_atomic == to->max_dest_rd_atomic;
}

static bool may_set(const struct qp *qp, const struct qp_config *to)
{
    const struct qp_config *own = &qp->config;
    return qp->state <= QP_RTR ||
           (keeps_connection(own, to) && (qp->state == QP_SQD || keeps_limits(own, to)));
}

bool qp_set_attributes(struct qp *qp, const struct qp_config *config)
{
    if (!may_set(qp, config) || !config_is_valid(config) ||
        !response_queue_limit(qp, config->max_dest_rd_atomic))
        return false;
    struct qp_config *own = &qp->config;
    bool begins_elsewhere = own->psn != config->psn;
    own->psn = config->psn;
    own->mtu = config->mtu;
    own->sl = config->sl;
    own->qkey = config->qkey;
    own->timeout = config->timeout;
    own->retry_count = config->retry_count;
    own->rnr_retry = config->rnr_retry;
    own->min_rnr_timer = config->min_rnr_timer;
    own->max_rd_atomic = config->max_rd_atomic;
    own->max_dest_rd_atomic = config->max_dest_rd_atomic;
    if (begins_elsewhere)
        begin_at_first_psn(qp);
    return true;
}

static struct qp_remote as_remote(const struct qp *qp)
{
    return (struct qp_remote){.qpn = qp->qpn,
                              .psn = qp->config.psn,
                              .address = qp->nic->config.address,
                              .guid = qp->nic->config.guid};
}

void qp_connect_pair(struct qp *one, struct qp *other)
{
    struct qp_remote towards_one = as_remote(one), towards_other = as_remote(other);
    qp_connect(one, &towards_other);
    qp_connect(other, &towards_one);
    one->peer = other;
    other->peer = one;
}

/* ---- sending ------------------------------------------------------------------------- */

uint32_t qp_number(const struct qp *qp)
{
    return qp->qpn;
}

uint64_t qp_rate_bps(const struct qp *qp)
{
    return qp->cc.rate_bps ? qp->cc.rate_bps : qp->nic->port.line.rate_bps;
}

/* Of the packets that it has sent, those that the far end has taken. */
static uint64_t packets_taken(const struct qp *qp)
{
    const struct responder *responder = &qp->peer->responder;
    uint64_t unacked = qp->requester.unacked;
    if (qp->config.transport == TRANSPORT_UD)
        return responder->datagrams;
    return unacked - qp->config.psn + (uint64_t)psn_ahead(responder->expected, unacked & PSN_MASK);
}

struct qp_view qp_look(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    uint64_t first = qp->config.psn;
    return (struct qp_view){.failed = qp->state == QP_ERR,
                            .posted = requester->posted_end - first,
                            .sent = requester->sent_end - first,
                            .next = requester->next - first,
                            .acknowledged = requester->unacked - first,
                            .received = packets_taken(qp),
                            .window = qp->cc.window};
}

/* From when on it may send data; NEVER when it has none. */
static picoseconds ready_at(const struct qp *qp)
{
    picoseconds response = response_queue_ready_at(qp), request = requester_ready_at(qp);
    picoseconds first = response < request ? response : request;
    return first > qp->not_before ? first : qp->not_before;
}

static void set_pause(struct qp *qp)
{
    qp->not_before = qp->paced_from + cc_gap(&qp->cc, qp->paced_bytes);
}

void qp_pace(struct qp *qp, uint32_t wire_bytes, picoseconds now)
{
    qp->paced_from = now;
    qp->paced_bytes = wire_bytes;
    set_pause(qp);
}

/* The pause after the last packet is now that of the new rate. */
static void rate_changed(struct cc *cc)
{
    struct qp *qp = container_of(cc, struct qp, cc);
    set_pause(qp);
    picoseconds now = qp->nic->clock->now, at = ready_at(qp);
    if (timer_is_set(&qp->wake) && at != NEVER)
        timer_set(qp->nic->clock, &qp->wake, at > now ? at : now);
}

void qp_wake(struct qp *qp, picoseconds now)
{
    if (qp->turns[TRAFFIC_DATA].waiting)
        return;
    picoseconds at = ready_at(qp);
    if (at <= now)
        nic_queue(qp, TRAFFIC_DATA);
    else if (at != NEVER)
        timer_set(qp->nic->clock, &qp->wake, at);
}

struct frame *qp_frame(const struct qp *qp, const struct packet *headers, uint32_t payload)
{
    struct frame *frame = nic_frame(qp->nic, packet_front_bytes(headers), payload);
    if (frame)
        packet_write_front(nic_frame_body(qp->nic, frame), headers);
    return frame;
}
