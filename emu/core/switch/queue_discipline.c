#include "switch/queue_discipline.h"

#include "switch/switch.h"

const struct queue_discipline *const queue_disciplines[QUEUE_DISCIPLINES] = {
    [QUEUE_TAIL_DROP] = &queue_tail_drop,
    [QUEUE_PACKET_LIMIT] = &queue_packet_limit,
    [QUEUE_WRED] = &queue_wred,
    [QUEUE_FECN] = &queue_fecn,
};

void queues_use(struct switch_port *out, enum queue_discipline_kind kind, uint16_t queues)
{
    out->disciplined[kind] |= queues;
    if (queues)
        out->disciplines |= (uint8_t)(1u << kind);
}
