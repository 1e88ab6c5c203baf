/* SplitMix64: the seeded random numbers of the model. One generator a fabric,
 * so that the same seed and the same events give the same run. */
#ifndef EMU_SIM_RNG_H
#define EMU_SIM_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint32_t rng_u32(struct rng *rng)
{
    return (uint32_t)(rng_next(rng) >> 32);
}

#endif
