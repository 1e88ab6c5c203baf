/* Latency histograms and a timeline: how late events were carried out, how often and when.
 * Values are wall-clock nanoseconds.
 *
 *     histogram   buckets are exact below 16 and then 16 to each power of two, so
 *                 a value is known to about 6 %
 *     timeline    the worst values, and the losses, of each interval since the
 *                 start; when there are more intervals than room, two become one */
#ifndef EMU_OBSERVE_LATENCY_HISTOGRAM_H
#define EMU_OBSERVE_LATENCY_HISTOGRAM_H

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

/* Ways in which the machine loses a frame, or reorders it. */
enum loss {
    LOST_IN_DATAPATH, /* the external datapath did not return it, or had no room */
    LOST_ON_ARRIVAL,  /* a socket's buffer or ring was full */
    LOST_ON_LEAVING,  /* the kernel refused it */
    LOST_ITS_PLACE,   /* a later frame of the same sender overtook it */
    LOSSES,
};

/* The events of an interval. The binding reads it as a row of numbers. */
struct interval {
    int64_t late; /* the largest lateness of a frame */
    int64_t kept; /* the longest time that the external datapath kept a frame */
    int64_t lost[LOSSES];
    int64_t dropped; /* lossless packets that found a switch's headroom full */
};

enum { TIMELINE_SLOTS = 1024 };

struct timeline {
    int64_t slot_ns; /* 0: nothing was recorded yet */
    struct interval slots[TIMELINE_SLOTS];
};

#define TIMELINE_FIRST_SLOT_NS INT64_C(1000000)

static inline void note_worst(int64_t *worst, int64_t value)
{
    if (value > *worst)
        *worst = value;
}

static inline void timeline_halve(struct timeline *timeline)
{
    for (int slot = 0; slot < TIMELINE_SLOTS; slot++) {
        struct interval both = {0};
        for (int half = 2 * slot; half < 2 * slot + 2 && half < TIMELINE_SLOTS; half++) {
            const struct interval *own = &timeline->slots[half];
            note_worst(&both.late, own->late);
            note_worst(&both.kept, own->kept);
            for (int loss = 0; loss < LOSSES; loss++)
                both.lost[loss] += own->lost[loss];
            both.dropped += own->dropped;
        }
        timeline->slots[slot] = both;
    }
    timeline->slot_ns *= 2;
}

/* The interval of an event `since` ns after the start; earlier events count as at the start. */
static inline struct interval *timeline_at(struct timeline *timeline, int64_t since)
{
    if (!timeline->slot_ns)
        timeline->slot_ns = TIMELINE_FIRST_SLOT_NS;
    if (since < 0)
        since = 0;
    while (since / timeline->slot_ns >= TIMELINE_SLOTS)
        timeline_halve(timeline);
    return &timeline->slots[since / timeline->slot_ns];
}

#endif
