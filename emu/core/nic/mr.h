/* Registered memory: which bytes of the host a NIC may touch, and how.
 *
 * A key names a region. The key and the bounds are checked before the first byte of a message is
 * written. A region belongs to a protection domain: for queue pairs of another domain its key is
 * invalid, as is a key that was never given out.
 *
 *     key   | place in the table + 1, 24 bits | variant, 8 bits |
 *
 * A region may have addresses only. It is checked like any other, and nothing is read from it or
 * written to it.
 *
 * An invalidated key is invalid from then on. Its place in the table goes to the end of the free
 * list, and the next region in it gets the next variant. So a key repeats after 256 regions in
 * the same place, as on NICs that build keys in this way.
 *
 * Pointers into a region are valid as long as its key is. Code that keeps a pointer keeps the key
 * too, and calls mr_has before every use.
 *
 * Left out: memory windows. */
#ifndef EMU_NIC_MR_H
#define EMU_NIC_MR_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic_api.h"
#include "sim/arena.h"

/* In a table, key, ... bytes are a registered region's; or, of a free place, `key` is its last. */
struct region {
    uint64_t va, length;
    uint32_t key;
    uint32_t pd;     /* its protection domain */
    uint32_t access; /* bits of enum access */
    uint8_t *bytes;  /* the host's, at least `length` of them; NULL: addresses alone */
    bool free;
    uint32_t next_free; /* place + 1; 0: none */
};

struct mr_table {
    struct region *regions;
    uint32_t count, capacity;       /* places that were ever used, and all */
    uint32_t first_free, last_free; /* of those used, longest free first: place + 1; 0: none */
};

/* Set-up only. */
bool mr_init(struct mr_table *table, struct arena *arena, uint32_t capacity);

/* Returns the region's key, 0 when the table is full. A place that is used for the first time
 * has this variant. */
uint32_t mr_register(struct mr_table *table, const struct region *region, uint8_t variant);

/* False when the key names nothing. */
bool mr_invalidate(struct mr_table *table, uint32_t pd, uint32_t key);

/* The key of the first region in a place, which counts from 1 here. */
uint32_t mr_key(uint32_t number, uint8_t variant);

/* Whether the key names a region, whatever it allows. */
bool mr_has(const struct mr_table *table, uint32_t pd, uint32_t key);

/* Whether all of [va, va + length) lies in the region of that key, and the region
 * grants all of `access`. Then `bytes` is where it begins in the host; NULL
 * otherwise, and where the region has none. */
bool mr_find(const struct mr_table *table, uint32_t pd, uint32_t key, uint64_t va, uint64_t length,
             uint32_t access, uint8_t **bytes);

#endif
