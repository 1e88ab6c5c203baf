#include "nic/qp_lifecycle.h"

#include <assert.h>

#include "nic/completer.h"
#include "nic/nic.h"
#include "nic/notification_point.h"
#include "nic/pacing.h"
#include "nic/psn.h"
#include "nic/qp_error.h"
#include "nic/qp_state.h"
#include "nic/recovery.h"
#include "nic/requester.h"
#include "nic/responder.h"
#include "nic/response_queue.h"
#include "nic/send_queue.h"
#include "nic/turns.h"

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

static uint16_t pkey_of(const struct qp_config *config)
{
    return config->pkey ? config->pkey : PKEY_DEFAULT;
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

static void reset_transport_state(struct qp *qp)
{
    qp->responder = (struct responder){.failing = qp->responder.failing,
                                       .recovery_priv = qp->responder.recovery_priv};
    response_queue_reset(qp);
    begin_at_first_psn(qp);
}

static void give_back_memory(struct qp *qp)
{
    response_queue_free(qp);
    if (qp->recovery->free)
        qp->recovery->free(qp);
    send_times_free(&qp->requester.send_times, qp->nic->arena);
    cc_free(&qp->cc, qp->nic->arena);
}

bool qp_init(struct qp *qp, struct nic *nic, uint32_t qpn, const struct qp_config *config)
{
    const struct recovery *recovery = recovery_named(config->recovery);
    *qp = (struct qp){.nic = nic, .qpn = qpn, .state = QP_RESET, .config = *config};
    if (!recovery || !config_is_valid(config))
        return false;
    qp->config.recovery = recovery->name;
    qp->config.pkey = pkey_of(config);
    qp->recovery = recovery;
    if (!cc_init(&qp->cc, nic->arena, nic->clock, &config->cc) || !make_room(qp)) {
        give_back_memory(qp);
        return false;
    }
    pacing_init(qp);
    notification_point_init(qp);
    completer_init(qp);
    responder_init(qp);
    reset_transport_state(qp);
    return true;
}

/* ---- the end ----------------------------------------------------------------------- */

static void remove_timers(struct qp *qp)
{
    struct timer *timers[] = {&qp->wake, &qp->responder.failing, &qp->requester.ack_timeout,
                              &qp->requester.completion};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        timer_remove(qp->nic->clock, timers[i]);
}

/* The other end expects none of its messages any more. */
static void part_from_peer(struct qp *qp)
{
    if (!qp->peer)
        return;
    qp->peer->responder.next_expected = NULL;
    qp->peer->peer = NULL;
}

void qp_end(struct qp *qp, picoseconds now)
{
    qp->state = QP_RESET;
    qp_stop(qp, STATUS_CANCELLED, now);
    turns_remove(qp);
    notification_point_leave(qp);
    remove_timers(qp);
    part_from_peer(qp);
    give_back_memory(qp);
}

/* ---- states ------------------------------------------------------------------------- */

bool qp_owes_response(const struct qp *qp)
{
    return response_queue_has_data(qp) || response_queue_has_acknowledgement(qp);
}

enum qp_state qp_state(const struct qp *qp)
{
    return qp->state;
}

bool qp_may_modify(const struct qp *qp, enum qp_state to)
{
    return qp_state_allows(qp->state, to);
}

bool qp_modify(struct qp *qp, enum qp_state to, picoseconds now)
{
    if (!qp_may_modify(qp, to))
        return false;
    if (to == QP_ERR)
        qp_fail(qp, STATUS_WR_FLUSH_ERR, now);
    qp->state = to;
    qp->requester.notes_drained &= to == QP_SQD;
    if (to == QP_RESET) {
        response_queue_forget(qp);
        qp_stop(qp, STATUS_CANCELLED, now);
        reset_transport_state(qp);
    }
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
    return true;
}

void qp_note_when_drained(struct qp *qp)
{
    qp->requester.notes_drained = qp->state == QP_SQD;
    send_queue_note_drained(qp);
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

/* The attributes of the connection stay as they are after RTR, ... */
static bool keeps_connection(const struct qp_config *own, const struct qp_config *to)
{
    return own->psn == to->psn && own->mtu == to->mtu && own->sl == to->sl &&
           own->dscp == to->dscp && own->pkey == pkey_of(to);
}

/* ... and the limits of sending stay until SQD. */
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
    own->dscp = config->dscp;
    own->pkey = pkey_of(config);
    own->denied = config->denied;
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

struct qp *qp_connect_far(struct qp *own, const struct qp_config *config,
                          const struct qp_remote *far)
{
    struct qp *qp = arena_take(own->nic->arena, 1, sizeof *qp);
    if (!qp)
        return NULL;
    qp->qpn = far->qpn;
    qp->config.transport = config->transport;
    qp->config.qkey = config->qkey;
    qp->peer = own;
    qp_connect(own, far);
    own->peer = qp;
    return qp;
}

/* ---- progress ------------------------------------------------------------------------- */

uint32_t qp_number(const struct qp *qp)
{
    return qp->qpn;
}

uint64_t qp_rate_bps(const struct qp *qp)
{
    return qp->cc.rate_bps ? qp->cc.rate_bps : qp->nic->port.line.rate_bps;
}

/* The number of packets of this queue pair that the other end has accepted. */
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
