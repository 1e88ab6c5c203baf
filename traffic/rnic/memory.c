#include "memory.h"

enum { VARIANT_BITS = 8 };

bool memory_init(struct memory *memory, struct arena *arena, uint32_t capacity)
{
    *memory = (struct memory){.capacity = capacity};
    memory->regions = arena_take(arena, capacity, sizeof *memory->regions);
    return memory->regions != NULL;
}

uint32_t memory_register(struct memory *memory, const struct region *region, uint8_t variant)
{
    if (memory->count == memory->capacity)
        return 0;
    struct region *entry = &memory->regions[memory->count++];
    *entry = *region;
    entry->key = memory->count << VARIANT_BITS | variant;
    return entry->key;
}

static struct region *named(const struct memory *memory, uint32_t pd, uint32_t key)
{
    uint32_t place = key >> VARIANT_BITS;
    if (place == 0 || place > memory->count)
        return NULL;
    struct region *region = &memory->regions[place - 1];
    return region->key == key && region->pd == pd ? region : NULL;
}

bool memory_has(const struct memory *memory, uint32_t pd, uint32_t key)
{
    return named(memory, pd, key) != NULL;
}

bool memory_invalidate(struct memory *memory, uint32_t pd, uint32_t key)
{
    struct region *region = named(memory, pd, key);
    if (region)
        region->key = 0;
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
