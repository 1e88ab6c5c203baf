/* A switch's packet memory. A packet occupies the buffer of the port it came
 * in by, per class, until its last bit has left by another: that is what both
 * flow controls measure.
 *
 *      |<------------------- buffer ------------------->|
 *      |   shared pool                  | headroom      |
 *
 *     lossy class      shared pool only; a full pool drops
 *     lossless class   shared up to xoff; beyond it (or when the pool is full)
 *                      its port's own headroom, which is sized for what still
 *                      arrives after the pause was sent
 *
 * XOFF is wanted while headroom is in use or more than xoff is held, and no
 * longer once headroom is empty and at most xon is held. */
#ifndef EMU_BUFFER_H
#define EMU_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

struct buffer {
    uint64_t shared_size, shared_used; /* bytes */
};

struct pfc {
    uint8_t priorities; /* bit per lossless priority; 0: PFC is off */
    uint32_t xoff_bytes, xon_bytes;
    uint32_t headroom_bytes; /* per port and lossless priority */
};

/* What one port holds of one class. */
struct ingress {
    uint32_t shared, headroom; /* bytes */
};

static inline uint32_t ingress_held(const struct ingress *ingress)
{
    return ingress->shared + ingress->headroom;
}

/* Takes `bytes` in; false when there is no room, and then nothing is charged. */
bool buffer_charge(struct buffer *buffer, struct ingress *ingress, const struct pfc *pfc,
                   bool lossless, uint32_t bytes);

/* The packet has left: headroom is emptied first. */
void buffer_release(struct buffer *buffer, struct ingress *ingress, uint32_t bytes);

static inline bool ingress_wants_xoff(const struct ingress *ingress, const struct pfc *pfc)
{
    return ingress->headroom > 0 || ingress->shared >= pfc->xoff_bytes;
}

static inline bool ingress_wants_xon(const struct ingress *ingress, const struct pfc *pfc)
{
    return ingress->headroom == 0 && ingress->shared <= pfc->xon_bytes;
}

#endif
