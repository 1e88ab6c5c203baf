#include "frame.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

static void thread(struct frame_pool *pool, struct frame *frames, uint32_t count, uint8_t *storage,
                   uint32_t size, bool small)
{
    struct frame **list = small ? &pool->free_small : &pool->free_large;
    /* Backwards, so that the first slots are handed out first. */
    for (uint32_t i = count; i-- > 0;) {
        frames[i] =
            (struct frame){.next = *list, .bytes = storage + (size_t)i * size, .small = small};
        *list = &frames[i];
    }
}

bool frame_pool_init(struct frame_pool *pool, uint32_t small, uint32_t large, uint32_t large_size)
{
    *pool = (struct frame_pool){.large_size = large_size};
    pool->storage_size = (size_t)small * SMALL_FRAME + (size_t)large * large_size;
    void *storage = mmap(NULL, pool->storage_size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pool->frames = calloc((size_t)small + large, sizeof *pool->frames);
    if (storage == MAP_FAILED || !pool->frames) {
        if (storage != MAP_FAILED)
            munmap(storage, pool->storage_size);
        free(pool->frames);
        *pool = (struct frame_pool){0};
        return false;
    }
    pool->storage = storage;
    thread(pool, pool->frames, small, pool->storage, SMALL_FRAME, true);
    thread(pool, pool->frames + small, large, pool->storage + (size_t)small * SMALL_FRAME,
           large_size, false);
    return true;
}

void frame_pool_free(struct frame_pool *pool)
{
    if (pool->storage)
        munmap(pool->storage, pool->storage_size);
    free(pool->frames);
    *pool = (struct frame_pool){0};
}

struct frame *frame_new(struct frame_pool *pool, uint8_t kind, uint32_t length)
{
    bool small = length <= SMALL_FRAME;
    struct frame **list = small ? &pool->free_small : &pool->free_large;
    struct frame *frame = *list;
    if (!frame || length > (small ? SMALL_FRAME : pool->large_size)) {
        pool->exhausted++;
        return NULL;
    }
    *list = frame->next;
    *frame = (struct frame){
        .bytes = frame->bytes, .small = small, .kind = kind, .length = length, .id = ++pool->ids};
    pool->in_use++;
    return frame;
}

void frame_free(struct frame_pool *pool, struct frame *frame)
{
    assert(pool->in_use > 0);
    struct frame **list = frame->small ? &pool->free_small : &pool->free_large;
    frame->next = *list;
    *list = frame;
    pool->in_use--;
}
