/* Runs the parts of a fabric in windows of time (part.h), on one or several threads.
 *
 *     window = from the earliest event of all parts, for the lookahead of the fabric
 *
 * In a window the threads take parts until none is left: first those that each took in the window
 * before, since they are in its cache, then those that other threads have not begun. Which thread
 * runs a part makes no difference to the result. */
#ifndef EMU_API_WINDOWS_H
#define EMU_API_WINDOWS_H

#include "sim/part.h"

struct windows;

/* Set-up only: runs `count` of a fabric's parts, from `first` on. `threads`: including the one that
 * calls windows_run, at most as many as there are parts to run. They begin with the first run. NULL
 * when there is no memory. */
struct windows *windows_new(struct part *const *parts, uint32_t first, uint32_t count,
                            uint32_t threads);
void windows_free(struct windows *windows);

/* The least time between a post and what it causes in another part. */
void windows_set_lookahead(struct windows *windows, picoseconds lookahead);

/* Runs all events up to and including `until`; returns how many. */
uint64_t windows_run(struct windows *windows, picoseconds until);

/* A single window, where other processes run other parts: runs all events up to and including
 * `until`, which is less than the lookahead after the next event of all. Returns how many. */
uint64_t windows_run_one(struct windows *windows, picoseconds until);
/* After the last of them that is due by then: it is `until` now. */
void windows_arrive(struct windows *windows, picoseconds until);

/* When the next event of any part is due. */
picoseconds windows_next_event(const struct windows *windows);

/* How the work was spread, since the start: windows, and events of each part; and, summed over
 * windows, those of the part that had the most of them. */
struct windows_balance {
    uint64_t windows, busiest_events;
    const uint64_t *events;
};
struct windows_balance windows_balance(const struct windows *windows);

#endif
