#include "departures.h"

bool departures_init(struct departures *departures, struct arena *arena)
{
    departures->ring = arena_take(arena, DEPARTURES, sizeof *departures->ring);
    if (!departures->ring)
        return false;
    for (uint64_t i = 0; i < DEPARTURES; i++)
        departures->ring[i] = (struct departure){.at = NEVER};
    return true;
}

void departures_note(struct departures *departures, uint64_t psn, bool again, picoseconds now)
{
    if (departures->ring)
        departures->ring[psn % DEPARTURES] =
            (struct departure){.psn = psn, .at = again ? NEVER : now};
}

picoseconds departures_since(const struct departures *departures, uint64_t psn, picoseconds now)
{
    if (!departures->ring)
        return 0;
    const struct departure *departure = &departures->ring[psn % DEPARTURES];
    return departure->psn == psn && departure->at != NEVER ? now - departure->at : 0;
}
