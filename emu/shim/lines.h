/* Memory in whole cache lines. What a frame needs at one moment of its passage stands
 * in one line (port.h, switch.h): where there are more ports than a cache holds, a
 * line that need not be fetched is worth more than a hundred instructions. */
#ifndef EMU_LINES_H
#define EMU_LINES_H

#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

#define ON_A_LINE _Alignas(CACHE_LINE)

/* Like calloc, for objects that have members ON_A_LINE. */
static inline void *lines_calloc(size_t count, size_t size)
{
    void *memory = aligned_alloc(CACHE_LINE, count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

#endif
