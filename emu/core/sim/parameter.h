/* A parameter as Python hands it over, by its name: plain declarations, which the binding reads. */
#ifndef EMU_SIM_PARAMETER_H
#define EMU_SIM_PARAMETER_H

#include <stdint.h>

/* One value, or a list of them: integers or real numbers. */
struct parameter {
    const char *name;
    const uint64_t *values;
    uint32_t count;
    const double *reals; /* NULL: the values are integers */
};

#endif
