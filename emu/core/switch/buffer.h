/* The packet memory of a switch. From its arrival until its last bit has left, a packet occupies
 * the buffer of its ingress port, for its class. Flow control measures this occupancy.
 *
 *      |<------------------------- buffer ------------------------>|
 *      |  reserved, per port and class  |  shared pool  | headroom |
 *
 *     lossy class      reserved memory first, then the shared pool; dropped when the pool is full
 *     lossless class   the same up to xoff. A packet that would exceed xoff, or finds the pool
 *                      full, goes into the headroom of its port. The headroom is sized for that
 *                      packet and for all that arrive after the pause
 *
 * A threshold on the pool is a number of bytes, or alpha times the free part of the pool (Choudhury
 * and Hahne, 1998), so that a single queue may occupy much, and each of many queues little. */
#ifndef EMU_SWITCH_BUFFER_H
#define EMU_SWITCH_BUFFER_H

#include "switch/switch_config.h"

struct buffer {
    uint64_t shared_size, shared_used; /* bytes */
    uint32_t reserved_bytes;           /* per port and class */
};

static inline uint64_t threshold_now(const struct threshold *threshold, const struct buffer *buffer)
{
    if (threshold->bytes)
        return threshold->bytes;
    return (buffer->shared_size - buffer->shared_used) * threshold->alpha_1024 >> 10;
}

/* The memory that packets of one class occupy at one port. */
struct priority_group {
    uint32_t reserved, shared, headroom; /* bytes */
};

static inline uint32_t priority_group_held(const struct priority_group *group)
{
    return group->reserved + group->shared + group->headroom;
}

/* Charges `bytes`. False when there is no room; then nothing is charged. `pfc` is NULL for a lossy
 * class. */
bool buffer_charge(struct buffer *buffer, struct priority_group *group,
                   const struct pfc_config *pfc, uint32_t bytes);

/* Releases the memory of a packet: headroom first, reserved memory last. */
void buffer_release(struct buffer *buffer, struct priority_group *group, uint32_t bytes);

#endif
