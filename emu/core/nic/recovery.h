/* Loss recovery. A scheme is one file. It is called where a packet is found to be missing:
 *
 *     responder    a request ahead of the expected one      ahead; later take_kept
 *     requester    a sequence NAK, a response ahead         missed
 *                  the timer, an RNR NAK                    resend_all
 *
 *     go-back-n           sends everything again from the first missing packet on
 *     go-back-0           sends the whole message again, as early RoCE NICs did
 *     selective-repeat    sends only the missing packets again
 *
 * No scheme sets a timer: the ACK timeout and the count of retries are in completer.c.
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

    /* Set-up and end; absent: nothing to do. init: false when memory is short; free is called then
     * too. */
    bool (*init)(struct qp *qp);
    void (*reset)(struct qp *qp); /* nothing is in flight any more */
    void (*free)(struct qp *qp);  /* gives back what init took, after a reset */

    /* Requester: a packet before `end` is missing, those in [first, end) are not. */
    void (*missed)(struct qp *qp, uint64_t first, uint64_t end);
    /* Requester: any packet in flight may be missing. */
    void (*resend_all)(struct qp *qp);

    /* The rest may be NULL, in schemes that keep no packet that arrives too early. */

    /* Requester: a response has arrived ahead of the expected one. has_response: whether an earlier
     * copy of it was kept. keep_response: keeps it; false when it cannot. */
    bool (*has_response)(const struct qp *qp, uint64_t psn);
    bool (*keep_response)(struct qp *qp, uint64_t psn);
    /* Requester: all before `psn` is acknowledged. Returns the PSN before which everything is,
     * counting kept responses. */
    uint64_t (*slide)(struct qp *qp, uint64_t psn);
    /* Requester: moves `next` past what needs no sending. */
    void (*skip)(struct qp *qp);
    /* Requester: the responses [psn, end) are missing. Returns the end of the part to request. */
    uint64_t (*gap_end)(const struct qp *qp, uint64_t psn, uint64_t end);
    /* Responder: a request ahead of the expected one. Whether it keeps the frame. */
    bool (*ahead)(struct qp *qp, const struct packet *packet, struct frame *frame);
    /* Responder: the expected request, if it was kept. The frame is the caller's. */
    struct frame *(*take_kept)(struct qp *qp, struct packet *packet);
};

/* NULL when there is no scheme of that name. */
const struct recovery *recovery_named(const char *name);

#endif
