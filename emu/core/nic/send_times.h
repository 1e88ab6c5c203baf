/* The time at which each packet in flight left, from which an ACK gives a round-trip time.
 *
 * A packet that was sent twice gives none, since its ACK may answer either of the two (Karn and
 * Partridge, SIGCOMM'87). Nor does a packet whose place in the ring a later one has taken. */
#ifndef EMU_NIC_SEND_TIMES_H
#define EMU_NIC_SEND_TIMES_H

#include "sim/arena.h"
#include "sim/clock.h"

enum { SEND_TIMES = 1024 };

struct send_times {
    struct send_time {
        uint64_t psn;
        picoseconds at; /* NEVER: sent twice */
    } * ring;           /* NULL: none are kept */
};

/* Set-up only. False when memory is short. */
bool send_times_init(struct send_times *send_times, struct arena *arena);

void send_times_free(struct send_times *send_times, struct arena *arena);

/* A packet leaves, for the first time or again. */
void send_times_note(struct send_times *send_times, uint64_t psn, bool again, picoseconds now);

/* Time since a packet left; 0: unknown. */
picoseconds send_times_since(const struct send_times *send_times, uint64_t psn, picoseconds now);

#endif
