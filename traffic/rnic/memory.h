/* Registered memory: which bytes of the host a NIC may touch, and how.
 *
 * A region is named by its key. Keys are checked, and bounds, before the first
 * byte of a message is written; a key that was never given out names nothing.
 *
 *     key   | place in the table + 1, 24 bits | variant, 8 bits |
 *
 * Left out: deregistration, protection domains, memory windows. */
#ifndef RNIC_MEMORY_H
#define RNIC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "rnic_api.h"

struct region {
    uint64_t va, length;
    uint32_t key;
    uint32_t access; /* bits of enum access */
    uint8_t *bytes;  /* the host's, at least `length` of them */
};

struct memory {
    struct region *regions;
    uint32_t count, capacity;
};

/* Set-up only. */
bool memory_init(struct memory *memory, uint32_t capacity);
void memory_free(struct memory *memory);

/* Set-up only. Returns the region's key, 0 when the table is full. */
uint32_t memory_register(struct memory *memory, const struct region *region, uint8_t variant);

/* Where [va, va + length) is in the host. NULL unless all of it lies in the
 * region of that key, and the region grants all of `access`. */
uint8_t *memory_find(const struct memory *memory, uint32_t key, uint64_t va, uint64_t length,
                     uint32_t access);

#endif
