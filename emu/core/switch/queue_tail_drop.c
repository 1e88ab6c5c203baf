/* Tail drop: drops a frame of a lossy class that would lift its queue above the limit: a number of
 * bytes, or the threshold on the shared pool (buffer.h) and what is reserved for a port and class,
 * which packets occupy first. Frames of a lossless class are always accepted, since flow control
 * limits them. */
#include "switch/queue_discipline.h"
#include "switch/switch_state.h"

static uint64_t limit_now(const struct threshold *threshold, const struct buffer *buffer)
{
    if (threshold->bytes)
        return threshold->bytes;
    return threshold_now(threshold, buffer) + buffer->reserved_bytes;
}

static enum queue_verdict join(void *state, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    const struct threshold *threshold = state;
    const struct buffer *buffer = &switch_of(&out->port)->buffer;
    if (out->queue[queue].bytes + frame->length <= limit_now(threshold, buffer))
        return QUEUE_TAKES;
    out->counters->tx_queue_discard[frame->tc]++;
    return QUEUE_DROPS;
}

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(threshold, bytes), PARAMETER_FIELD(threshold, alpha_1024), {0}};

static const struct queue_discipline tail_drop = {
    .name = "tail-drop",
    .phase = QUEUE_LIMITS,
    .only_lossy = true,
    .bytes = sizeof(struct threshold),
    .parameters = parameters,
    .join = join,
};

REGISTER(queue_disciplines, tail_drop)
