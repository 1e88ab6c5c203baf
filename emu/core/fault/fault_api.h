/* A fault's settings and counts, as Python sees them: plain declarations, read by the binding as
 * they stand here. Times are emulated picoseconds, sizes bytes, rates bits/s. */
#ifndef EMU_FAULT_FAULT_API_H
#define EMU_FAULT_FAULT_API_H

#include <stdbool.h>
#include <stdint.h>

struct fault;

enum fault_kind {
    FAULT_LINK_DOWN,
    FAULT_LINK_FLAP,
    FAULT_LOSS,
    FAULT_CORRUPTION,
    FAULT_DUPLICATION,
    FAULT_REORDERING,
    FAULT_DELAY,
    FAULT_FLOW_CONTROL,
    FAULT_PAUSE_STORM,
    FAULT_SLOW_RECEIVER,
    FAULT_WRONG_MAP,
    FAULT_SMALL_HEADROOM,
    FAULT_WRONG_ECN,
    FAULT_IGNORED_CNPS,
};

enum { FAULT_PSNS = 64 };

struct fault_config {
    int kind;       /* enum fault_kind */
    int64_t at_ps;  /* when it begins; now, when that is over */
    int64_t for_ps; /* how long it lasts; 0: until it is cleared */
    uint64_t seed;  /* of what it draws */
    /* Loss, corruption, duplication, reordering, flow control: which packets. */
    uint64_t probability_2_32; /* in units of 2^-32; or */
    uint64_t every;            /* every n-th, not 0; or */
    bool by_psn;               /* the PSNs that follow, each once */
    uint32_t psn_count, psns[FAULT_PSNS];
    bool damages;                   /* flow control: its packets arrive, but damaged */
    int64_t by_ps;                  /* delay, reordering: how much later */
    int64_t period_ps, down_ps;     /* flapping */
    uint8_t priority;               /* pause storm */
    uint64_t rate_bps;              /* slow receiver */
    uint32_t buffer_bytes;          /* of each class, in a slow receiver's NIC */
    uint8_t of_dscp[64], of_pcp[8]; /* wrong map: the priorities of what comes in by the port */
    uint32_t headroom_bytes;        /* small headroom: for each lossless priority of the port */
    uint32_t kmin_bytes[8], kmax_bytes[8], pmax_2_32[8]; /* wrong ECN: by queue, where it marks */
};

struct fault_counts {
    uint64_t packets_seen; /* that it might have hit */
    uint64_t hits;         /* packets it did something to; times a link went down; pauses sent */
    uint64_t packets_dropped;
};

/* Ends it now, or never lets it begin. */
void fault_clear(struct fault *fault);
struct fault_counts fault_counted(struct fault *fault);

#endif
