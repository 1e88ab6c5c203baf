/* The states of a queue pair. */
#ifndef EMU_NIC_QP_STATE_H
#define EMU_NIC_QP_STATE_H

#include "nic/qp.h"

enum ability {
    CAN_POST_RECEIVE = 1,
    CAN_RECEIVE = 2,
    CAN_POST = 4,
    CAN_BEGIN = 8,    /* sending a message */
    CAN_GO_ON = 16,   /* sending one that was begun */
    POSTS_FLUSH = 32, /* what is posted completes at once, flushed */
};

bool qp_can(const struct qp *qp, enum ability ability);

/* Whether an application may request that step. */
bool qp_state_allows(enum qp_state from, enum qp_state to);

#endif
