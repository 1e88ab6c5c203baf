/* The memory of a fabric's parts: taken piece by piece while it is built, zeroed, in
 * whole cache lines, and given back all at once.
 *
 *     chunk │ ports of a switch │ addresses │ NIC │ its queue pairs │ ...  free │
 *
 * Parts that are built together are used together, so they are next to each other here. They are
 * on huge pages, if the kernel has them. In a large fabric every packet touches a dozen parts, and
 * the processor's TLB has too few entries for so many small pages. In a small one, which runs for
 * milliseconds, the page faults of samples and frames would take a third of the time; it pays with
 * some megabytes. */
#ifndef EMU_SIM_ARENA_H
#define EMU_SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* the newest, and by it the older ones */
    uint8_t *fresh, *end;       /* the unused part of the newest block */
};

/* NULL when there is no memory. */
void *arena_take(struct arena *arena, size_t count, size_t size);
void arena_free(struct arena *arena);

#endif
