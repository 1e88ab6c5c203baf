/* Packet limit: for the queue of InfiniBand's management lane, which has no credits and little
 * room. */
#include "switch/queue_discipline.h"
#include "switch/switch_state.h"

struct packet_limit {
    uint32_t packets;
};

static enum queue_verdict join(void *state, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    const struct packet_limit *limit = state;
    (void)frame;
    if (out->queue[queue].count < limit->packets)
        return QUEUE_TAKES;
    out->counters->vl15_dropped++;
    return QUEUE_DROPS;
}

static const struct parameter_field parameters[] = {PARAMETER_FIELD(packet_limit, packets), {0}};

static const struct queue_discipline packet_limit = {
    .name = "packet-limit",
    .phase = QUEUE_LIMITS,
    .bytes = sizeof(struct packet_limit),
    .parameters = parameters,
    .join = join,
};

REGISTER(queue_disciplines, packet_limit)
