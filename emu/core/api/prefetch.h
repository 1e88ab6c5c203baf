/* Prefetch: while one timer fires, memory that the next ones need is fetched.
 *
 * In a fabric of a thousand hosts next to nothing of what an event touches is still in
 * the cache, and most of it is found by following pointers: some twenty waits for memory,
 * one after the other. But the clock knows which timers come next. So what they will
 * touch is asked for beforehand, each time one pointer further, and all those waits pass
 * while other events happen:
 *
 *     events away      3                       2                     1
 *     arrival          the line, the far port  the frame             its class, its queue pair
 *     latency is over  the frame               its port and queue    the queue's last frame
 *     last bit is out  the port and its queue  the next frame, and   what sends it
 *                                              the buffer of the last
 *
 * It only looks, so nothing comes of it but time, and a guess that is wrong costs a fetch.
 * Small fabrics seldom have two timers in a tick, and need none of this. */
#ifndef EMU_API_PREFETCH_H
#define EMU_API_PREFETCH_H

#include "sim/clock.h"

/* A timer will fire, about so many others before it. */
void prefetch(const struct timer *timer, unsigned events_away);

#endif
