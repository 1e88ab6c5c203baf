/*            init      connect    connect
 *     RESET ──────▶ INIT ──────▶ RTR ──────▶ RTS ◀──▶ SQD
 *       ▲                                     │
 *       │ modify                              │ a message of an unreliable transport fails
 *     (all)                                   ▼
 *                                            SQE ──▶ RTS
 *     (all) ── modify, or a failure ──▶ ERR
 *
 *             post receive   receive   post     begin   go on
 *     RESET        -            -        -        -       -
 *     INIT         x            -        -        -       -
 *     RTR          x            x        -        -       -
 *     RTS          x            x        x        x       x
 *     SQD          x            x        x        -       x
 *     SQE          x            x      flushed    -       -
 *     ERR       flushed         -      flushed    -       -
 *
 * A request that may not be posted completes at once with LOC_QP_OP_ERR. */
#include "nic/qp_state.h"

static const uint8_t abilities[QP_STATES] = {
    [QP_INIT] = CAN_POST_RECEIVE,
    [QP_RTR] = CAN_POST_RECEIVE | CAN_RECEIVE,
    [QP_RTS] = CAN_POST_RECEIVE | CAN_RECEIVE | CAN_POST | CAN_BEGIN | CAN_GO_ON,
    [QP_SQD] = CAN_POST_RECEIVE | CAN_RECEIVE | CAN_POST | CAN_GO_ON,
    [QP_SQE] = CAN_POST_RECEIVE | CAN_RECEIVE | POSTS_FLUSH,
    [QP_ERR] = POSTS_FLUSH,
};

/* One bit for each state that an application may request; RESET and ERR are always allowed. */
static const uint8_t steps[QP_STATES] = {
    [QP_RESET] = 1 << QP_INIT,
    [QP_INIT] = 1 << QP_INIT | 1 << QP_RTR,
    [QP_RTR] = 1 << QP_RTS,
    [QP_RTS] = 1 << QP_RTS | 1 << QP_SQD,
    [QP_SQD] = 1 << QP_SQD | 1 << QP_RTS,
    [QP_SQE] = 1 << QP_RTS,
};

bool qp_can(const struct qp *qp, enum ability ability)
{
    return abilities[qp->state] & ability;
}

bool qp_state_allows(enum qp_state from, enum qp_state to)
{
    return to == QP_RESET || to == QP_ERR || (to < QP_STATES && steps[from] & 1 << to);
}
