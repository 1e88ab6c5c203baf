/* Memory in whole cache lines. What a frame needs at one step of its way is in one line (port.h,
 * switch_state.h): if a fabric has more ports than the cache holds, a line that need not be fetched
 * saves more time than a hundred instructions. */
#ifndef EMU_SIM_CACHE_LINE_H
#define EMU_SIM_CACHE_LINE_H

enum { CACHE_LINE = 64 };

#define ON_A_LINE _Alignas(CACHE_LINE)

#endif
