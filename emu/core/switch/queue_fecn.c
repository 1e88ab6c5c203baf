/* FECN (fecn.h), by the queue depth before the packet joins. */
#include "switch/queue_discipline.h"
#include "switch/switch.h"

static enum queue_verdict join(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    (void)sw;
    fecn_see(&out->fecn, &out->port, frame, out->queue[queue].bytes);
    return QUEUE_TAKES;
}

const struct queue_discipline queue_fecn = {.join = join};
