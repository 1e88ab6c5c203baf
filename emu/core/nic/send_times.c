#include "nic/send_times.h"

bool send_times_init(struct send_times *send_times, struct arena *arena)
{
    send_times->ring = arena_take(arena, SEND_TIMES, sizeof *send_times->ring);
    if (!send_times->ring)
        return false;
    for (uint64_t i = 0; i < SEND_TIMES; i++)
        send_times->ring[i] = (struct send_time){.at = NEVER};
    return true;
}

void send_times_free(struct send_times *send_times, struct arena *arena)
{
    arena_give_back(arena, send_times->ring, SEND_TIMES, sizeof *send_times->ring);
}

void send_times_note(struct send_times *send_times, uint64_t psn, bool again, picoseconds now)
{
    if (send_times->ring)
        send_times->ring[psn % SEND_TIMES] =
            (struct send_time){.psn = psn, .at = again ? NEVER : now};
}

picoseconds send_times_since(const struct send_times *send_times, uint64_t psn, picoseconds now)
{
    if (!send_times->ring)
        return 0;
    const struct send_time *departure = &send_times->ring[psn % SEND_TIMES];
    return departure->psn == psn && departure->at != NEVER ? now - departure->at : 0;
}
