/* When each packet in flight left: what an ACK makes a round trip of.
 *
 * A packet that was sent twice tells nothing, as nobody knows which of the two was
 * answered (Karn and Partridge, SIGCOMM'87). Nor does one that left so many packets ago that its
 * place has been taken. */
#ifndef EMU_NIC_SEND_TIMES_H
#define EMU_NIC_SEND_TIMES_H

#include "sim/arena.h"
#include "sim/clock.h"

enum { SEND_TIMES = 1024 };

struct send_times {
    struct send_time {
        uint64_t psn;
        picoseconds at; /* NEVER: it was sent twice */
    } * ring;           /* NULL: none are kept */
};

/* Set-up only. False when memory is short. */
bool send_times_init(struct send_times *send_times, struct arena *arena);

/* A packet leaves, for the first time or again. */
void send_times_note(struct send_times *send_times, uint64_t psn, bool again, picoseconds now);

/* Time since a packet left; 0: nobody knows. */
picoseconds send_times_since(const struct send_times *send_times, uint64_t psn, picoseconds now);

#endif
