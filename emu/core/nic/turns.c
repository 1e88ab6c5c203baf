#include "nic/turns.h"

#include "nic/nic.h"

/* The class of the next packet. A datagram has that of its address. */
static uint8_t class_of_next(const struct qp *qp, enum traffic traffic)
{
    const struct message *message = qp->requester.current;
    bool is_datagram = traffic == TRAFFIC_DATA && message && message->to;
    return (is_datagram ? &message->to->path : &qp->path)->tc[traffic];
}

void turns_join(struct qp *qp, enum traffic traffic)
{
    struct nic *nic = qp->nic;
    uint8_t tc = class_of_next(qp, traffic);
    struct turns *turns = &nic->turns[traffic][tc];
    struct turn *turn = &qp->turns[traffic];
    if (turn->waiting)
        return;
    *turn = (struct turn){.waiting = true};
    if (turns->first)
        turns->last->turns[traffic].next = qp;
    else
        turns->first = qp;
    turns->last = qp;
    nic->waiting[traffic] |= (uint16_t)(1u << tc);
}

void turns_leave(struct nic *nic, enum traffic traffic, uint8_t tc)
{
    struct turns *turns = &nic->turns[traffic][tc];
    struct turn *turn = &turns->first->turns[traffic];
    turn->waiting = false;
    turns->first = turn->next;
    if (!turns->first)
        nic->waiting[traffic] &= (uint16_t) ~(1u << tc);
}

/* Nothing happens when the queue pair is not in that list. */
static void remove_from(struct nic *nic, enum traffic traffic, uint8_t tc, const struct qp *qp)
{
    struct turns *turns = &nic->turns[traffic][tc];
    struct qp *before = NULL, *found = turns->first;
    for (; found && found != qp; found = found->turns[traffic].next)
        before = found;
    if (found && !before)
        turns_leave(nic, traffic, tc);
    if (!found || !before)
        return;
    before->turns[traffic].next = found->turns[traffic].next;
    found->turns[traffic].waiting = false;
    if (turns->last == found)
        turns->last = before;
}

void turns_remove(struct qp *qp)
{
    for (enum traffic traffic = 0; traffic < TRAFFIC_KINDS; traffic++)
        for (uint8_t tc = 0; qp->turns[traffic].waiting && tc < CLASSES; tc++)
            remove_from(qp->nic, traffic, tc, qp);
}
