/* The memory of a fabric's parts: taken piece by piece while it is built, zeroed, in
 * whole cache lines, and given back all at once.
 *
 *     chunk │ ports of a switch │ addresses │ NIC │ its queue pairs │ ...  free │
 *
 * Parts that are built together are used together, and here they are neighbours. A
 * fabric that outgrows the first chunk gets huge pages for the rest, where the kernel
 * has them: every packet touches a dozen parts, and a processor remembers the places
 * of too few small pages for that. A small fabric, as one of many processes of a lab
 * has it, takes no more pages than it uses. */
#ifndef EMU_ARENA_H
#define EMU_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* the newest, and by it the older ones */
    uint8_t *fresh, *end;       /* of the newest: what is not taken */
};

/* NULL when there is no memory. */
void *arena_take(struct arena *arena, size_t count, size_t size);
void arena_free(struct arena *arena);

#endif
