/* Packet limit: for the queue of InfiniBand's management lane, which has no credits and little
 * room. */
#include "switch/queue_discipline.h"
#include "switch/switch.h"

enum { LIMIT = 16 };

static enum queue_verdict join(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    (void)sw;
    (void)frame;
    if (out->queue[queue].count < LIMIT)
        return QUEUE_TAKES;
    out->counters.vl15_dropped++;
    return QUEUE_DROPS;
}

const struct queue_discipline queue_packet_limit = {.join = join};
