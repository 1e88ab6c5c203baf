#include "switch/queue_discipline.h"

const struct queue_discipline *const queue_disciplines[QUEUE_DISCIPLINES] = {
    [QUEUE_TAIL_DROP] = &queue_tail_drop,
    [QUEUE_PACKET_LIMIT] = &queue_packet_limit,
    [QUEUE_WRED] = &queue_wred,
    [QUEUE_FECN] = &queue_fecn,
};
