/* The fidelity ledger: how late things really happened, as histograms.
 *
 * Buckets are exact below 16 and then 16 to each power of two, so a value is
 * known to about 6 %. Values are wall-clock nanoseconds. */
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

#endif
