/* A part of a fabric: nodes that share a clock and a frame pool, and nothing with other parts.
 *
 * What passes from one part to another is mail. A part posts mail while it runs; the others take
 * it out before they run again. Between a post and the time for which it is meant lies at least
 * the lookahead of the fabric, so every part may run that far beyond the next event anywhere:
 *
 *              ├─ window ─┤├─ window ─┤
 *     part 0   run ───────▸ run ──────▸
 *                      ╲ ╱ mail
 *     part 1   run ───────▸ run ──────▸
 *
 * This is conservative synchronisation in windows (Nicol, "The cost of conservative
 * synchronization in parallel discrete event simulations", JACM 1993). Events at one instant have
 * an order of their own (clock.h), so that the result does not depend on the number of parts.
 *
 * No lock is needed: mail of one window is written by its sender alone, and read in the next
 * window by its receiver alone. There are two sets of boxes, used by turns. */
#ifndef EMU_SIM_PART_H
#define EMU_SIM_PART_H

#include "sim/clock.h"
#include "sim/frame.h"
#include "sim/mailbox.h"

enum { PARTS_MAX = FRAME_HOMES };

struct part {
    struct clock clock;
    struct frame_pool pool;
    uint32_t number, count;    /* of parts of the fabric */
    uint8_t turn;              /* the set of boxes that is written to */
    bool out_of_memory;        /* mail was lost */
    picoseconds earliest;      /* mail that was posted in this window */
    struct mailbox *posted[2]; /* for each part */
};

static inline struct part *part_of_clock(struct clock *clock)
{
    return container_of(clock, struct part, clock);
}

/* Set-up only. The pool is the caller's business. False when there is no memory. */
bool part_init(struct part *part, uint32_t number, uint32_t count);
void part_free(struct part *part);

/* `mail.at` is at least the lookahead after now, or the parts do not run. */
void part_post(struct part *from, const struct part *to, struct mail mail);

/* Puts mail that `from`, which another process runs, has posted into the boxes of `to`, which reads
 * it in the next window. */
void part_take_in(const struct part *to, struct part *from, struct mail mail);

/* Runs all events up to and including `until`, after opening the mail of the previous window.
 * Returns how many. `parts`: all of the fabric. */
uint64_t part_run(struct part *part, struct part *const *parts, picoseconds until);

/* When the next event of the part is due, or one that its mail causes. */
picoseconds part_next_event(struct part *part);

#endif
