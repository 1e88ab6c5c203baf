#include "nic/pacing.h"

#include "nic/nic.h"
#include "nic/requester.h"
#include "nic/response_queue.h"
#include "nic/turns.h"

/* The earliest time at which the queue pair may send data; NEVER when it has none. */
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

/* Changes the pause after the last packet to that of the new rate. */
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
        turns_join(qp, TRAFFIC_DATA);
    else if (at != NEVER)
        timer_set(qp->nic->clock, &qp->wake, at);
}

static void wake(struct timer *timer, picoseconds now)
{
    struct qp *qp = container_of(timer, struct qp, wake);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
}

void pacing_init(struct qp *qp)
{
    qp->cc.changed = rate_changed;
    timer_init(&qp->wake, wake);
}
