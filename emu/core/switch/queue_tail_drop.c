/* Tail drop: a queue over its threshold accepts no frame of a lossy class. Frames of a lossless
 * class are always accepted, since flow control limits them. */
#include "switch/queue_discipline.h"
#include "switch/switch.h"

static enum queue_verdict join(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    uint64_t joined = out->queue[queue].bytes + frame->length;
    if (frame->charge.lossless || joined <= threshold_now(&sw->config.lossy, &sw->buffer))
        return QUEUE_TAKES;
    out->counters.tx_queue_discard[frame->tc]++;
    return QUEUE_DROPS;
}

const struct queue_discipline queue_tail_drop = {.join = join};
