#include "arbiter.h"

#include <assert.h>

static void next_turn(struct arbiter *arbiter)
{
    arbiter->turn = (arbiter->turn + 1) % CLASSES;
    arbiter->granted = false;
}

/* Weights are at least 1 and the quantum holds the largest frame, so a class
 * whose turn comes can always send. */
static uint8_t weighted(struct arbiter *arbiter, const struct arbiter_config *config,
                        const struct frame_queue queues[CLASSES], uint16_t sendable)
{
    for (;;) {
        uint8_t klass = arbiter->turn;
        uint32_t *deficit = &arbiter->deficit[klass];
        if (!queues[klass].first)
            *deficit = 0;
        if (sendable & 1u << klass) {
            uint32_t length = queues[klass].first->length;
            if (!arbiter->granted)
                *deficit += config->weight[klass] * (uint32_t)ARBITER_QUANTUM;
            arbiter->granted = true;
            if (*deficit >= length) {
                *deficit -= length;
                return klass;
            }
        }
        next_turn(arbiter);
    }
}

uint8_t arbiter_pick(struct arbiter *arbiter, const struct arbiter_config *config,
                     const struct frame_queue queues[CLASSES], uint16_t sendable)
{
    if (!sendable)
        return ARBITER_NONE;
    uint16_t strict = sendable & config->strict;
    if (strict)
        return (uint8_t)(31 - __builtin_clz(strict));
    return weighted(arbiter, config, queues, sendable);
}
