#include "switch/buffer.h"

#include <assert.h>

static bool fits_shared(const struct buffer *buffer, const struct priority_group *group,
                        const struct pfc_config *pfc, uint32_t bytes)
{
    if (buffer->shared_used + bytes > buffer->shared_size)
        return false;
    return !pfc || group->shared + bytes <= threshold_now(&pfc->xoff, buffer);
}

bool buffer_charge(struct buffer *buffer, struct priority_group *group,
                   const struct pfc_config *pfc, uint32_t bytes)
{
    if (group->reserved + bytes <= buffer->reserved_bytes) {
        group->reserved += bytes;
        return true;
    }
    if (fits_shared(buffer, group, pfc, bytes)) {
        group->shared += bytes;
        buffer->shared_used += bytes;
        return true;
    }
    if (!pfc || group->headroom + bytes > pfc->headroom_bytes)
        return false;
    group->headroom += bytes;
    return true;
}

/* Takes up to `bytes` from `part`. Returns how many `part` did not have. */
static uint32_t take(uint32_t *part, uint32_t bytes)
{
    uint32_t taken = bytes < *part ? bytes : *part;
    *part -= taken;
    return bytes - taken;
}

void buffer_release(struct buffer *buffer, struct priority_group *group, uint32_t bytes)
{
    if (group->headroom == 0 && bytes <= group->shared) { /* the usual case */
        group->shared -= bytes;
        buffer->shared_used -= bytes;
        return;
    }
    uint32_t shared = group->shared;
    uint32_t left = take(&group->headroom, bytes);
    left = take(&group->shared, left);
    left = take(&group->reserved, left);
    assert(left == 0);
    buffer->shared_used -= shared - group->shared;
}
