/* The memory of a fabric's parts: taken piece by piece while it is built, zeroed, in
 * whole cache lines, and given back all at once. A part that ends before the fabric gives its
 * pieces back, and the next pieces of the same size are taken from these.
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
struct arena_spare;

struct arena {
    struct arena_chunk *chunks; /* the newest, and by it the older ones */
    uint8_t *fresh, *end;       /* the unused part of the newest block */
    struct arena_spare *spares; /* pieces that were given back: one of each size */
};

/* NULL when there is no memory. */
void *arena_take(struct arena *arena, size_t count, size_t size);
/* `piece` was taken with these arguments; NULL: nothing happens. */
void arena_give_back(struct arena *arena, void *piece, size_t count, size_t size);
void arena_free(struct arena *arena);

#endif
