/* Memory in whole cache lines. What a frame needs at one moment of its passage stands
 * in one line (port.h, switch.h): where there are more ports than a cache holds, a
 * line that need not be fetched is worth more than a hundred instructions. */
#ifndef EMU_LINES_H
#define EMU_LINES_H

enum { CACHE_LINE = 64 };

#define ON_A_LINE _Alignas(CACHE_LINE)

#endif
