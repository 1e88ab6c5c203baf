#include "buffer.h"

#include <assert.h>

static bool fits_shared(const struct buffer *buffer, const struct ingress *ingress,
                        const struct pfc *pfc, uint32_t bytes)
{
    if (buffer->shared_used + bytes > buffer->shared_size)
        return false;
    return !pfc || ingress->shared + bytes <= threshold_now(&pfc->xoff, buffer);
}

bool buffer_charge(struct buffer *buffer, struct ingress *ingress, const struct pfc *pfc,
                   uint32_t bytes)
{
    if (ingress->reserved + bytes <= buffer->reserved_bytes) {
        ingress->reserved += bytes;
        return true;
    }
    if (fits_shared(buffer, ingress, pfc, bytes)) {
        ingress->shared += bytes;
        buffer->shared_used += bytes;
        return true;
    }
    if (!pfc || ingress->headroom + bytes > pfc->headroom_bytes)
        return false;
    ingress->headroom += bytes;
    return true;
}

/* Of `bytes`, as many as `part` has; returns the rest. */
static uint32_t take(uint32_t *part, uint32_t bytes)
{
    uint32_t taken = bytes < *part ? bytes : *part;
    *part -= taken;
    return bytes - taken;
}

void buffer_release(struct buffer *buffer, struct ingress *ingress, uint32_t bytes)
{
    if (ingress->headroom == 0 && bytes <= ingress->shared) { /* as nearly always */
        ingress->shared -= bytes;
        buffer->shared_used -= bytes;
        return;
    }
    uint32_t shared = ingress->shared;
    uint32_t left = take(&ingress->headroom, bytes);
    left = take(&ingress->shared, left);
    left = take(&ingress->reserved, left);
    assert(left == 0);
    buffer->shared_used -= shared - ingress->shared;
}
