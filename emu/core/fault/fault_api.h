/* A fault's settings and counts, as Python sees them: plain declarations, which the binding
 * reads. Times are emulated picoseconds. */
#ifndef EMU_FAULT_FAULT_API_H
#define EMU_FAULT_FAULT_API_H

#include <stdint.h>

#include "sim/parameter.h"

struct fault;

struct fault_config {
    const char *kind; /* its key in a spec */
    int64_t at_ps;    /* when it begins; a time in the past means now */
    int64_t for_ps;   /* how long it lasts; 0: until it is cleared */
    uint64_t seed;    /* of its random numbers */
    const struct parameter *parameters;
    uint32_t parameter_count;
};

struct fault_counts {
    uint64_t packets_seen; /* packets that it might have hit */
    uint64_t hits;         /* packets it hit, times a link went down, or pauses sent */
    uint64_t packets_dropped;
};

/* The kinds of faults there are, and the parameters of each; NULL after the last. */
const char *fault_kind(uint32_t index);
const char *fault_parameter(uint32_t index, uint32_t place);

/* Ends the fault now, or prevents it from beginning. */
void fault_clear(struct fault *fault);
struct fault_counts fault_counted(struct fault *fault);

#endif
