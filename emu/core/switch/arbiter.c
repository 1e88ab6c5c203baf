#include "switch/arbiter.h"

static void next_turn(struct arbiter *arbiter)
{
    arbiter->turn = (arbiter->turn + 1) % CLASSES;
    arbiter->granted = false;
}

/* The first frame of the queue is about to leave. A queue that becomes empty loses its deficit. */
static uint8_t served(const struct arbiter *arbiter, struct deficits *deficits,
                      const struct frame_queue queues[CLASSES], uint8_t queue)
{
    if (arbiter->shares && queues[queue].count == 1)
        deficits->of[queue] = 0;
    return queue;
}

/* Terminates, because every round adds to the deficit of a queue that can send. */
static uint8_t weighted(struct arbiter *arbiter, struct deficits *deficits,
                        const struct arbiter_config *config,
                        const struct frame_queue queues[CLASSES], uint16_t sendable)
{
    arbiter->shares = true;
    for (;;) {
        uint8_t queue = arbiter->turn;
        uint32_t *deficit = &deficits->of[queue];
        if (!queues[queue].count)
            *deficit = 0;
        if (sendable & 1u << queue) {
            uint32_t length = queues[queue].frames.first->length;
            if (!arbiter->granted)
                *deficit += config->quantum[queue];
            arbiter->granted = true;
            if (*deficit >= length) {
                *deficit -= length;
                return served(arbiter, deficits, queues, queue);
            }
        }
        next_turn(arbiter);
    }
}

uint8_t arbiter_pick(struct arbiter *arbiter, struct deficits *deficits,
                     const struct arbiter_config *config, const struct frame_queue queues[CLASSES],
                     uint16_t sendable)
{
    if (!sendable)
        return ARBITER_NONE;
    uint16_t strict = sendable & config->strict;
    if (strict)
        return (uint8_t)(31 - __builtin_clz(strict));
    if (!(sendable & (sendable - 1))) /* a single queue needs no share */
        return served(arbiter, deficits, queues, (uint8_t)__builtin_ctz(sendable));
    return weighted(arbiter, deficits, config, queues, sendable);
}
