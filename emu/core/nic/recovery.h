/* What happens after a loss, by choice. A scheme is one file, and has a say where
 * a packet is missed:
 *
 *     responder    a request ahead of the expected one      ahead; later take_kept
 *     requester    a sequence NAK, a response ahead         missed
 *                  the timer, an RNR NAK                    resend_all
 *
 *     go-back-n           everything again, from the first packet that is missing
 *     go-back-0           the whole message again, as early RoCE NICs did
 *     selective-repeat    what is missing, and nothing else
 *
 * A scheme enters itself into the registry. The Python side has one file for each scheme as well:
 * emu/spec/recovery/. */
#ifndef EMU_NIC_RECOVERY_H
#define EMU_NIC_RECOVERY_H

#include "nic/qp.h"
#include "sim/registry.h"

struct recovery {
    const char *name;
    bool resumes;        /* within a message; otherwise a message begins again from nothing */
    bool counts_retries; /* every loss that is reported is one; otherwise the timer's alone */

    /* Set-up only; absent: nothing to do. False when memory is short. */
    bool (*init)(struct qp *qp);
    void (*reset)(struct qp *qp); /* nothing is in flight any more */

    /* Requester: a packet before `end` is missing, those in [first, end) are not. */
    void (*missed)(struct qp *qp, uint64_t first, uint64_t end);
    /* Requester: nothing is known of what is in flight. */
    void (*resend_all)(struct qp *qp);

    /* The rest may be absent: nothing is kept that comes ahead of its time. */

    /* Requester: a response ahead of the expected one. Whether it was kept before; whether it is
     * from now on. */
    bool (*has_response)(const struct qp *qp, uint64_t psn);
    bool (*keep_response)(struct qp *qp, uint64_t psn);
    /* Requester: all before `psn` is acknowledged; before which PSN is that so, with what was
     * kept? */
    uint64_t (*slide)(struct qp *qp, uint64_t psn);
    /* Requester: moves `next` past what needs no sending. */
    void (*skip)(struct qp *qp);
    /* Requester: of the responses [psn, end), which are not here, how far to ask for them. */
    uint64_t (*gap_end)(const struct qp *qp, uint64_t psn, uint64_t end);
    /* Responder: a request ahead of the expected one. Whether it keeps the frame. */
    bool (*ahead)(struct qp *qp, const struct packet *packet, struct frame *frame);
    /* Responder: the expected request, if it was kept. The frame is the caller's. */
    struct frame *(*take_kept)(struct qp *qp, struct packet *packet);
};

/* NULL when there is no scheme of that name. */
const struct recovery *recovery_named(const char *name);

#endif
