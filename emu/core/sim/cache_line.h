/* Memory in whole cache lines. What a frame needs at one moment of its passage stands
 * in one line (port.h, switch.h): where there are more ports than a cache holds, a
 * line that need not be fetched is worth more than a hundred instructions. */
#ifndef EMU_SIM_CACHE_LINE_H
#define EMU_SIM_CACHE_LINE_H

enum { CACHE_LINE = 64 };

#define ON_A_LINE _Alignas(CACHE_LINE)

#endif
