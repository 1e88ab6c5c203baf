/* A slot holds a frame's state and, right behind it, the frame's bytes, so that both are close in
 * the cache. The slot freed last is used first, because it is probably still in the cache. */
#include "sim/frame.h"

#include <string.h>

#include "sim/cache_line.h"

static size_t slot_size(uint32_t room)
{
    size_t size = sizeof(struct frame) + room;
    return (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static struct frame_slots slots_at(uint8_t *storage, uint32_t count, uint32_t room)
{
    return (struct frame_slots){
        .fresh = storage, .end = storage + count * slot_size(room), .room = room};
}

bool frame_pool_init(struct frame_pool *pool, struct arena *arena, uint32_t small, uint32_t large,
                     uint32_t large_size)
{
    assert(large_size <= UINT16_MAX);
    size_t size = small * slot_size(SMALL_FRAME) + large * slot_size(large_size);
    uint8_t *storage = arena_take(arena, 1, size);
    if (!storage)
        return false;
    *pool = (struct frame_pool){0};
    pool->small = slots_at(storage, small, SMALL_FRAME);
    pool->large = slots_at(pool->small.end, large, large_size);
    return true;
}

bool frame_pool_join(struct frame_pool *pool, struct arena *arena, uint32_t number, uint32_t count)
{
    assert(number < count && count <= FRAME_HOMES);
    pool->number = (uint8_t)number;
    for (int turn = 0; turn < 2; turn++) {
        pool->returned[turn] = arena_take(arena, count, sizeof *pool->returned[turn]);
        if (!pool->returned[turn])
            return false;
    }
    return true;
}

static void touch(struct frame_slots *slots, uint32_t count)
{
    size_t size = count * slot_size(slots->room), left = (size_t)(slots->end - slots->fresh);
    memset(slots->fresh, 0, size < left ? size : left);
}

void frame_pool_prefault(struct frame_pool *pool, uint32_t frames)
{
    touch(&pool->small, frames);
    touch(&pool->large, frames);
}

static struct frame *take_slot(struct frame_slots *slots)
{
    struct frame *frame = slots->free;
    if (frame) {
        slots->free = frame->next;
    } else if (slots->fresh < slots->end) {
        frame = (struct frame *)slots->fresh;
        slots->fresh += slot_size(slots->room);
    }
    return frame;
}

struct frame *frame_new_stored(struct frame_pool *pool, uint8_t kind, uint32_t length,
                               uint32_t stored)
{
    struct frame_slots *slots = stored <= SMALL_FRAME ? &pool->small : &pool->large;
    struct frame *frame = stored <= slots->room ? take_slot(slots) : NULL;
    if (!frame) {
        pool->exhausted++;
        return NULL;
    }
    *frame = (struct frame){.bytes = (uint8_t *)(frame + 1),
                            .length = length,
                            .stored = (uint16_t)stored,
                            .kind = kind,
                            .small = slots == &pool->small,
                            .home = pool->number};
    pool->in_use++;
    pool->link_in_use += kind == FRAME_IB_LINK;
    return frame;
}

SELDOM static void give_back(struct frame_pool *pool, struct frame *frame)
{
    struct returned_frames *returned = &pool->returned[pool->turn][frame->home];
    struct frame **first = &returned->first[frame->small];
    frame->next = *first;
    if (!*first)
        returned->last[frame->small] = frame;
    *first = frame;
    returned->count++;
}

void frame_free(struct frame_pool *pool, struct frame *frame)
{
    pool->link_in_use -= frame->kind == FRAME_IB_LINK;
    if (frame->home != pool->number) {
        give_back(pool, frame);
        return;
    }
    assert(pool->in_use > 0);
    struct frame_slots *slots = frame->small ? &pool->small : &pool->large;
    frame->next = slots->free;
    slots->free = frame;
    pool->in_use--;
}

static void take_back(struct frame_slots *slots, struct frame *first, struct frame *last)
{
    if (!first)
        return;
    last->next = slots->free;
    slots->free = first;
}

void frame_pool_take_back(struct frame_pool *pool, struct frame_pool *from, uint8_t turn)
{
    struct returned_frames *returned = &from->returned[turn][pool->number];
    if (!returned->count)
        return;
    take_back(&pool->large, returned->first[false], returned->last[false]);
    take_back(&pool->small, returned->first[true], returned->last[true]);
    pool->in_use -= returned->count;
    *returned = (struct returned_frames){0};
}

uint32_t frame_pool_returned(const struct frame_pool *pool, uint32_t count)
{
    uint32_t returned = 0;
    for (uint32_t i = 0; i < count; i++)
        returned += pool->returned[0][i].count + pool->returned[1][i].count;
    return returned;
}
