/* When each packet in flight left: what an ACK makes a round trip of.
 *
 * A packet that was sent twice tells nothing, as nobody knows which of the two was
 * answered (Karn and Partridge, SIGCOMM'87). Nor does one that left so many packets ago that its
 * place has been taken. */
#ifndef RNIC_DEPARTURES_H
#define RNIC_DEPARTURES_H

#include "arena.h"
#include "clock.h"

enum { DEPARTURES = 1024 };

struct departures {
    struct departure {
        uint64_t psn;
        picoseconds at; /* NEVER: it was sent twice */
    } * ring;           /* NULL: none are kept */
};

/* Set-up only. False when memory is short. */
bool departures_init(struct departures *departures, struct arena *arena);

/* A packet leaves, for the first time or again. */
void departures_note(struct departures *departures, uint64_t psn, bool again, picoseconds now);

/* Time since a packet left; 0: nobody knows. */
picoseconds departures_since(const struct departures *departures, uint64_t psn, picoseconds now);

#endif
