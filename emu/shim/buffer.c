#include "buffer.h"

#include <assert.h>

static bool fits_shared(const struct buffer *buffer, uint32_t bytes)
{
    return buffer->shared_used + bytes <= buffer->shared_size;
}

bool buffer_charge(struct buffer *buffer, struct ingress *ingress, const struct pfc *pfc,
                   bool lossless, uint32_t bytes)
{
    bool below_xoff = !lossless || ingress->shared < pfc->xoff_bytes;
    if (below_xoff && fits_shared(buffer, bytes)) {
        ingress->shared += bytes;
        buffer->shared_used += bytes;
        return true;
    }
    if (!lossless || ingress->headroom + bytes > pfc->headroom_bytes)
        return false;
    ingress->headroom += bytes;
    return true;
}

void buffer_release(struct buffer *buffer, struct ingress *ingress, uint32_t bytes)
{
    uint32_t from_headroom = bytes < ingress->headroom ? bytes : ingress->headroom;
    uint32_t from_shared = bytes - from_headroom;
    assert(from_shared <= ingress->shared && from_shared <= buffer->shared_used);
    ingress->headroom -= from_headroom;
    ingress->shared -= from_shared;
    buffer->shared_used -= from_shared;
}
