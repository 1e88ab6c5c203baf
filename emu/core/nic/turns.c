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
