/* Congestion control of one queue pair: the reaction point.
 *
 * It is told of CNPs and of every packet sent, and keeps `rate_bps`; the queue pair
 * leaves at least the time between the starts of two packets that the first would
 * take at that rate. Who sends CNPs is another matter: see notification.h.
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
    /* The rest may be NULL. */
    /* A CNP arrived. */
    void (*notified)(struct cc *cc, picoseconds now);
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

struct cct {
    struct cct_config config;
    uint16_t ccti; /* index into the table */
    struct timer timer;
};

struct cc {
    const struct cc_algorithm *algorithm;
    struct clock *clock;
    uint64_t line_rate_bps;
    uint64_t rate_bps; /* 0: not limited */
    union {
        struct dcqcn dcqcn;
        struct dcqcn_nvidia dcqcn_nvidia;
        struct cct cct;
    };
};

extern const struct cc_algorithm cc_none, cc_dcqcn, cc_dcqcn_nvidia, cc_cct;

/* NULL when there is no algorithm of that name. */
const struct cc_algorithm *cc_named(const char *name);

/* A CNP arrived; false when it is ignored. */
static inline bool cc_notified(struct cc *cc, picoseconds now)
{
    if (cc->algorithm->notified)
        cc->algorithm->notified(cc, now);
    return cc->algorithm->notified;
}

static inline void cc_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    if (cc->algorithm->sent)
        cc->algorithm->sent(cc, wire, now);
}

static inline void cc_stop(struct cc *cc)
{
    if (cc->algorithm->stop)
        cc->algorithm->stop(cc);
}

/* How long after a packet of `wire` bytes began the next one may. */
static inline picoseconds cc_gap(const struct cc *cc, uint32_t wire)
{
    return cc->rate_bps ? serialisation(wire, cc->rate_bps) : 0;
}

#endif
