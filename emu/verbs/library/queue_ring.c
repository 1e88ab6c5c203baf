/* A queue of work requests in memory that is shared with the NICs. */
#include "library.h"

/* Returns the file for the NICs, or -1. */
int ring_create(struct emu_ring *ring, uint32_t slots, uint32_t inline_bytes)
{
    uint32_t slot_bytes = uverbs_slot_bytes(inline_bytes, MAX_SGE);
    void *memory;
    *ring = (struct emu_ring){
        .slots = slots, .slot_bytes = slot_bytes, .bytes = uverbs_queue_bytes(slots, slot_bytes)};
    int file = new_queue_memory("emu-queue", ring->bytes, &memory);
    if (file < 0)
        return -1;
    ring->shared = memory;
    pthread_mutex_init(&ring->lock, NULL);
    return file;
}

void ring_destroy(struct emu_ring *ring)
{
    if (ring->shared)
        free_queue_memory(ring->shared);
    ring->shared = NULL;
}

uint32_t ring_ended(const struct emu_ring *ring)
{
    return __atomic_load_n(&ring->completed, __ATOMIC_ACQUIRE) +
           __atomic_load_n(&ring->shared->dropped, __ATOMIC_ACQUIRE);
}

struct uverbs_wqe *ring_next(struct emu_ring *ring)
{
    if (ring->head - ring_ended(ring) >= ring->slots)
        return NULL;
    size_t offset = (size_t)(ring->head % ring->slots) * ring->slot_bytes;
    return (struct uverbs_wqe *)(ring->shared->bytes + offset); // NOLINT
}
