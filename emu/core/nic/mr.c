#include "nic/mr.h"

enum { VARIANT_BITS = 8 };

bool mr_init(struct mr_table *table, struct arena *arena, uint32_t capacity)
{
    *table = (struct mr_table){.capacity = capacity};
    table->regions = arena_take(arena, capacity, sizeof *table->regions);
    return table->regions != NULL;
}

/* The next key of the place that has been free longest: its last key with the variant raised by
 * one. */
static uint32_t recycled_key(struct mr_table *table)
{
    const struct region *region = &table->regions[table->first_free - 1];
    uint8_t variant = (uint8_t)(region->key + 1);
    uint32_t key = table->first_free << VARIANT_BITS | variant;
    table->first_free = region->next_free;
    return key;
}

uint32_t mr_key(uint32_t number, uint8_t variant)
{
    return number << VARIANT_BITS | variant;
}

/* Returns 0 when the table is full. */
static uint32_t new_key(struct mr_table *table, uint8_t variant)
{
    if (table->count < table->capacity)
        return mr_key(++table->count, variant);
    return table->first_free ? recycled_key(table) : 0;
}

static void free_place(struct mr_table *table, struct region *region)
{
    uint32_t place = region->key >> VARIANT_BITS;
    region->free = true;
    region->next_free = 0;
    if (table->first_free)
        table->regions[table->last_free - 1].next_free = place;
    else
        table->first_free = place;
    table->last_free = place;
}

uint32_t mr_register(struct mr_table *table, const struct region *region, uint8_t variant)
{
    uint32_t key = new_key(table, variant);
    if (key == 0)
        return 0;
    struct region *entry = &table->regions[(key >> VARIANT_BITS) - 1];
    *entry = *region;
    entry->key = key;
    return key;
}

static struct region *named(const struct mr_table *table, uint32_t pd, uint32_t key)
{
    uint32_t place = key >> VARIANT_BITS;
    if (place == 0 || place > table->count)
        return NULL;
    struct region *region = &table->regions[place - 1];
    return region->key == key && region->pd == pd && !region->free ? region : NULL;
}

bool mr_has(const struct mr_table *table, uint32_t pd, uint32_t key)
{
    return named(table, pd, key) != NULL;
}

bool mr_invalidate(struct mr_table *table, uint32_t pd, uint32_t key)
{
    struct region *region = named(table, pd, key);
    if (region)
        free_place(table, region);
    return region != NULL;
}

bool mr_find(const struct mr_table *table, uint32_t pd, uint32_t key, uint64_t va, uint64_t length,
             uint32_t access, uint8_t **bytes)
{
    const struct region *region = named(table, pd, key);
    *bytes = NULL;
    if (!region || (region->access & access) != access)
        return false;
    if (va < region->va || length > region->length || va - region->va > region->length - length)
        return false;
    if (region->bytes)
        *bytes = region->bytes + (va - region->va);
    return true;
}
