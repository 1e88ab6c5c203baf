/* Adds what a message brought to what is there, as a GPU does in a reduction.
 *
 * float32 in the order of the machine; neither end need be aligned. */
#ifndef EMU_NIC_SUM_H
#define EMU_NIC_SUM_H

#include <stdint.h>
#include <string.h>

static inline void sum_add(uint8_t *sum, const uint8_t *summand, uint32_t floats)
{
    for (uint32_t i = 0; i < floats; i++) {
        float a, b;
        memcpy(&a, sum + i * sizeof a, sizeof a);
        memcpy(&b, summand + i * sizeof b, sizeof b);
        a += b;
        memcpy(sum + i * sizeof a, &a, sizeof a);
    }
}

#endif
