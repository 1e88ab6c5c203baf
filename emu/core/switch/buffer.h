/* A switch's packet memory. A packet occupies the buffer of the port it came
 * in by, per class, until its last bit has left by another: that is what both
 * flow controls measure.
 *
 *      |<------------------------- buffer ------------------------>|
 *      |  reserved, per port and class  |  shared pool  | headroom |
 *
 *     lossy class      reserved, then shared; a full pool drops
 *     lossless class   the same up to xoff; a packet that would cross it, or finds
 *                      the pool full, goes into its port's own headroom, which is
 *                      sized for it and for all that arrives after the pause
 *
 * XOFF is wanted while headroom is in use, and no longer once it is empty and at
 * most xon of the pool is held.
 *
 * A threshold on the pool is a number of bytes, or alpha times what is free of it
 * (Choudhury and Hahne, 1998): a lone queue may have much, each of many little. */
#ifndef EMU_SWITCH_BUFFER_H
#define EMU_SWITCH_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

struct buffer {
    uint64_t shared_size, shared_used; /* bytes */
    uint32_t reserved_bytes;           /* per port and class */
};

struct threshold {
    uint32_t bytes;      /* 0: alpha counts */
    uint32_t alpha_1024; /* times 1024 */
};

static inline uint64_t threshold_now(const struct threshold *threshold, const struct buffer *buffer)
{
    if (threshold->bytes)
        return threshold->bytes;
    return (buffer->shared_size - buffer->shared_used) * threshold->alpha_1024 >> 10;
}

/* Of one port. */
struct pfc {
    uint8_t priorities; /* bit per lossless priority; 0: PFC is off */
    struct threshold xoff;
    uint32_t xon_below_xoff; /* bytes */
    uint32_t headroom_bytes; /* per lossless priority */
};

/* What one port holds of one class. */
struct priority_group {
    uint32_t reserved, shared, headroom; /* bytes */
};

static inline uint32_t priority_group_held(const struct priority_group *group)
{
    return group->reserved + group->shared + group->headroom;
}

/* Takes `bytes` in; false when there is no room, and then nothing is charged.
 * `pfc`: NULL for a lossy class. */
bool buffer_charge(struct buffer *buffer, struct priority_group *group, const struct pfc *pfc,
                   uint32_t bytes);

/* The packet has left: headroom is emptied first, what is reserved last. */
void buffer_release(struct buffer *buffer, struct priority_group *group, uint32_t bytes);

static inline bool priority_group_wants_xoff(const struct priority_group *group)
{
    return group->headroom > 0;
}

static inline bool priority_group_wants_xon(const struct priority_group *group,
                                            const struct pfc *pfc, const struct buffer *buffer)
{
    return group->headroom == 0 && (group->shared == 0 || group->shared + pfc->xon_below_xoff <=
                                                              threshold_now(&pfc->xoff, buffer));
}

#endif
