/* Congestion control of one queue pair, both of its halves.
 *
 * The receiver's half (notification point) is told of packets that met
 * congestion, and says whether the sender shall be notified by a CNP. The
 * sender's half (reaction point) is told of CNPs and of every packet sent, and
 * keeps `rate_bps`; the queue pair leaves at least the time between the starts of two
 * packets that the first would take at that rate.
 *
 * An algorithm is one file: it fills a struct cc_algorithm, and is entered
 * into the table in cc.c and the union below. */
#ifndef RNIC_CC_H
#define RNIC_CC_H

#include "clock.h"
#include "rnic_api.h"

struct cc;

struct cc_algorithm {
    const char *name;
    /* Set-up only: checks the configuration and makes timers. False when it is wrong. */
    bool (*init)(struct cc *cc, const struct qp_config *config);
    /* A packet with CE arrived: true when a CNP is due. */
    bool (*congestion_seen)(struct cc *cc, picoseconds now);
    /* A CNP arrived; false when it is ignored. */
    bool (*notified)(struct cc *cc, picoseconds now);
    /* `wire` bytes begin to leave. */
    void (*sent)(struct cc *cc, uint32_t wire, picoseconds now);
    /* The queue pair has failed: no timer may fire any more. */
    void (*stop)(struct cc *cc);
};

struct dcqcn {
    struct dcqcn_config config;
    /* Reaction point; rates in bits per second. */
    bool limiting;
    double current_rate, target_rate;
    double alpha;
    picoseconds alpha_since; /* it is right for this time; NEVER before the first CNP */
    uint64_t bytes;          /* since the last event of the byte counter */
    uint32_t byte_stage, timer_stage;
    struct timer increase;
    /* Notification point. */
    picoseconds next_cnp_at;
};

struct cc {
    const struct cc_algorithm *algorithm;
    struct clock *clock;
    uint64_t line_rate_bps;
    uint64_t rate_bps; /* 0: not limited */
    union {
        struct dcqcn dcqcn;
    };
};

extern const struct cc_algorithm cc_none, cc_dcqcn;

/* NULL when there is no algorithm of that name. */
const struct cc_algorithm *cc_named(const char *name);

/* How long after a packet of `wire` bytes began the next one may. */
static inline picoseconds cc_gap(const struct cc *cc, uint32_t wire)
{
    return cc->rate_bps ? serialisation(wire, cc->rate_bps) : 0;
}

#endif
