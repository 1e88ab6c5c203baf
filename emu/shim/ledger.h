/* The fidelity ledger: how late things really happened, how often and when.
 * Values are wall-clock nanoseconds.
 *
 *     histogram   buckets are exact below 16 and then 16 to each power of two, so
 *                 a value is known to about 6 %
 *     timeline    the worst value in each interval since the start; when there
 *                 are more intervals than room, two become one */
#ifndef EMU_LEDGER_H
#define EMU_LEDGER_H

#include <stdint.h>

enum { HISTOGRAM_FINE = 16, HISTOGRAM_BUCKETS = 1024 };

struct histogram {
    uint64_t count[HISTOGRAM_BUCKETS];
};

static inline uint32_t histogram_bucket(uint64_t value)
{
    if (value < HISTOGRAM_FINE)
        return (uint32_t)value;
    uint32_t exponent = 63 - (uint32_t)__builtin_clzll(value); /* >= 4 */
    return HISTOGRAM_FINE * (exponent - 3) + (uint32_t)(value >> (exponent - 4) & 15);
}

static inline void histogram_add(struct histogram *histogram, int64_t value)
{
    histogram->count[histogram_bucket(value > 0 ? (uint64_t)value : 0)]++;
}

enum { TIMELINE_SLOTS = 1024 };

struct timeline {
    int64_t interval; /* ns a slot; 0: nothing was noted yet */
    int64_t worst[TIMELINE_SLOTS];
};

#define TIMELINE_FIRST_INTERVAL INT64_C(1000000)

static inline void timeline_halve(struct timeline *timeline)
{
    for (int slot = 0; slot < TIMELINE_SLOTS; slot++) {
        int64_t a = 2 * slot < TIMELINE_SLOTS ? timeline->worst[2 * slot] : 0;
        int64_t b = 2 * slot < TIMELINE_SLOTS ? timeline->worst[2 * slot + 1] : 0;
        timeline->worst[slot] = a > b ? a : b;
    }
    timeline->interval *= 2;
}

/* `since`: ns since the start; earlier than that counts as the start. */
static inline void timeline_note(struct timeline *timeline, int64_t since, int64_t value)
{
    if (!timeline->interval)
        timeline->interval = TIMELINE_FIRST_INTERVAL;
    if (since < 0)
        since = 0;
    while (since / timeline->interval >= TIMELINE_SLOTS)
        timeline_halve(timeline);
    int64_t *worst = &timeline->worst[since / timeline->interval];
    if (value > *worst)
        *worst = value;
}

#endif
