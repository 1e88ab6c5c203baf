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
    bool limiting; /* rates in bits per second */
    double current_rate, target_rate;
    double alpha;
    picoseconds alpha_since; /* it is right for this time; NEVER before the first CNP */
    uint64_t bytes;          /* since the last event of the byte counter */
    uint32_t byte_stage, timer_stage;
    struct timer increase;
};

enum increase_cause { NO_INCREASE, INCREASE_BY_BYTES, INCREASE_BY_TIME };

struct dcqcn_nvidia {
    struct roce_cc_ecn_config config;
    bool limiting;
    double current_rate, target_rate;
    double alpha;
    picoseconds alpha_since; /* the start of the period that alpha is right for */
    bool alpha_notified;     /* a CNP came in that period */
    uint64_t bytes;          /* since the last event of the byte counter */
    uint32_t byte_stage, timer_stage;
    enum increase_cause last_increase; /* since the last reduction */
    struct timer increase, reduce;
};

struct cc {
    const struct cc_algorithm *algorithm;
    struct clock *clock;
    uint64_t line_rate_bps;
    uint64_t rate_bps;       /* 0: not limited */
    picoseconds next_cnp_at; /* notification point: no CNP before */
    union {
        struct dcqcn dcqcn;
        struct dcqcn_nvidia dcqcn_nvidia;
    };
};

extern const struct cc_algorithm cc_none, cc_dcqcn, cc_dcqcn_nvidia;

/* NULL when there is no algorithm of that name. */
const struct cc_algorithm *cc_named(const char *name);

/* A packet with CE arrived: whether a CNP is due, of which one is sent in an interval. */
static inline bool cc_cnp_is_due(struct cc *cc, picoseconds interval, picoseconds now)
{
    if (now < cc->next_cnp_at)
        return false;
    cc->next_cnp_at = now + interval;
    return true;
}

/* How long after a packet of `wire` bytes began the next one may. */
static inline picoseconds cc_gap(const struct cc *cc, uint32_t wire)
{
    return cc->rate_bps ? serialisation(wire, cc->rate_bps) : 0;
}

#endif
