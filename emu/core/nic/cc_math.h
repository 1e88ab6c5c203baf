/* Arithmetic that rate controllers share. */
#ifndef EMU_NIC_CC_MATH_H
#define EMU_NIC_CC_MATH_H

#include <stdint.h>

static inline double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* `count` less `taken`; 0 when more is taken than there is. */
static inline uint32_t less(uint32_t count, uint32_t taken)
{
    return count > taken ? count - taken : 0;
}

static inline double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

#endif
