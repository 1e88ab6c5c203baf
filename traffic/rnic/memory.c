#include "memory.h"

enum { VARIANT_BITS = 8 };

bool memory_init(struct memory *memory, struct arena *arena, uint32_t capacity)
{
    *memory = (struct memory){.capacity = capacity};
    memory->regions = arena_take(arena, capacity, sizeof *memory->regions);
    return memory->regions != NULL;
}

/* The key of the place that was free longest: its last one with the next variant. */
static uint32_t recycled_key(struct memory *memory)
{
    const struct region *region = &memory->regions[memory->first_free - 1];
    uint8_t variant = (uint8_t)(region->key + 1);
    uint32_t key = memory->first_free << VARIANT_BITS | variant;
    memory->first_free = region->next_free;
    return key;
}

/* 0 when there is no place left. */
static uint32_t new_key(struct memory *memory, uint8_t variant)
{
    if (memory->count < memory->capacity)
        return ++memory->count << VARIANT_BITS | variant;
    return memory->first_free ? recycled_key(memory) : 0;
}

static void free_place(struct memory *memory, struct region *region)
{
    uint32_t place = region->key >> VARIANT_BITS;
    region->free = true;
    region->next_free = 0;
    if (memory->first_free)
        memory->regions[memory->last_free - 1].next_free = place;
    else
        memory->first_free = place;
    memory->last_free = place;
}

uint32_t memory_register(struct memory *memory, const struct region *region, uint8_t variant)
{
    uint32_t key = new_key(memory, variant);
    if (key == 0)
        return 0;
    struct region *entry = &memory->regions[(key >> VARIANT_BITS) - 1];
    *entry = *region;
    entry->key = key;
    return key;
}

static struct region *named(const struct memory *memory, uint32_t pd, uint32_t key)
{
    uint32_t place = key >> VARIANT_BITS;
    if (place == 0 || place > memory->count)
        return NULL;
    struct region *region = &memory->regions[place - 1];
    return region->key == key && region->pd == pd && !region->free ? region : NULL;
}

bool memory_has(const struct memory *memory, uint32_t pd, uint32_t key)
{
    return named(memory, pd, key) != NULL;
}

bool memory_invalidate(struct memory *memory, uint32_t pd, uint32_t key)
{
    struct region *region = named(memory, pd, key);
    if (region)
        free_place(memory, region);
    return region != NULL;
}

bool memory_find(const struct memory *memory, uint32_t pd, uint32_t key, uint64_t va,
                 uint64_t length, uint32_t access, uint8_t **bytes)
{
    const struct region *region = named(memory, pd, key);
    *bytes = NULL;
    if (!region || (region->access & access) != access)
        return false;
    if (va < region->va || length > region->length || va - region->va > region->length - length)
        return false;
    if (region->bytes)
        *bytes = region->bytes + (va - region->va);
    return true;
}
