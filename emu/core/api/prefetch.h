/* Prefetch: while one timer fires, the memory that the next timers need is fetched.
 *
 * In a fabric of a thousand hosts almost nothing that an event uses is still in the cache. Most of
 * it is found by following pointers: about twenty waits for memory, one after another. But the
 * clock knows which timers fire next. So the memory that they need is requested in advance, one
 * pointer further each time, and the waits overlap with other events:
 *
 *     events away      3                       2                     1
 *     arrival          the line, the far port  the frame             its class, its queue pair
 *     latency is over  the frame               its port and queue    the queue's last frame
 *     last bit is out  the port and its queue  the next frame, and   what sends it
 *                                              the buffer of the last
 *
 * Prefetch changes no state. A wrong guess costs one fetch. Small fabrics seldom have two timers in
 * a tick, and need no prefetch. */
#ifndef EMU_API_PREFETCH_H
#define EMU_API_PREFETCH_H

#include "sim/clock.h"

/* Fetches memory for a timer that fires after about `events_away` others. */
void prefetch(const struct timer *timer, unsigned events_away);

#endif
