/* Registered memory: which bytes of the host a NIC may touch, and how.
 *
 * A region is named by its key. Keys are checked, and bounds, before the first
 * byte of a message is written; a key that was never given out names nothing.
 * It belongs to a protection domain, and to queue pairs of another its key names
 * nothing either.
 *
 *     key   | place in the table + 1, 24 bits | variant, 8 bits |
 *
 * A region may be of addresses alone: it is checked like any other, and nothing
 * is ever read from it or written to it.
 *
 * A key that was invalidated names nothing from then on, and is never given out
 * again.
 *
 * Bytes that were found stay usable for as long as their key names its region: whoever keeps a
 * pointer keeps the key beside it, and asks memory_has before every use.
 *
 * Left out: memory windows. */
#ifndef RNIC_MEMORY_H
#define RNIC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "rnic_api.h"

struct region {
    uint64_t va, length;
    uint32_t key;
    uint32_t pd;     /* its protection domain */
    uint32_t access; /* bits of enum access */
    uint8_t *bytes;  /* the host's, at least `length` of them; NULL: addresses alone */
};

struct memory {
    struct region *regions;
    uint32_t count, capacity;
};

/* Set-up only. */
bool memory_init(struct memory *memory, struct arena *arena, uint32_t capacity);

/* Set-up only. Returns the region's key, 0 when the table is full. */
uint32_t memory_register(struct memory *memory, const struct region *region, uint8_t variant);

/* False when the key names nothing. */
bool memory_invalidate(struct memory *memory, uint32_t pd, uint32_t key);

/* Whether the key names a region, whatever it allows. */
bool memory_has(const struct memory *memory, uint32_t pd, uint32_t key);

/* Whether all of [va, va + length) lies in the region of that key, and the region
 * grants all of `access`. Then `bytes` is where it begins in the host; NULL
 * otherwise, and where the region has none. */
bool memory_find(const struct memory *memory, uint32_t pd, uint32_t key, uint64_t va,
                 uint64_t length, uint32_t access, uint8_t **bytes);

#endif
