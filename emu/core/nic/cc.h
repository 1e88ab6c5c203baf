/* Congestion control of one queue pair: the reaction point.
 *
 *     events                                   decisions
 *     sent           a packet begins to leave ──┐   rate_bps   at which packets follow
 *     acknowledged   packets have arrived     ──┤              each other
 *     on_becn        a BECN came, most often  ──┼─▶ gap        least time between them
 *                    in a CNP                   │   window     packets in flight
 *     lost           a packet is missing      ──┘
 *
 * Between the starts of two packets the queue pair leaves at least the time that the first takes
 * at rate_bps. A change of the rate also changes the gap that is running: the next packet leaves
 * when it would have left at the new rate. Otherwise a flow that was slowed to 1 Mb/s would wait
 * 33 ms for its next packet, even if its rate had risen meanwhile. How a receiver notifies the
 * sender of congestion is in notification_point.h.
 *
 * An algorithm is one file, which enters a struct cc_algorithm into the registry. That struct has
 * the handlers of the events that the algorithm uses. The state of the algorithm is a struct of its
 * own. Its parameters are doubles in that struct and are set by name: times in picoseconds, rates
 * in bits per second, shares of 1. Its variables, which tests read, are doubles too. The Python
 * side has one file for each algorithm as well: emu/spec/congestion_control/. */
#ifndef EMU_NIC_CC_H
#define EMU_NIC_CC_H

#include "nic/nic_api.h"
#include "sim/arena.h"
#include "sim/clock.h"
#include "sim/parameter_field.h"
#include "sim/registry.h"

struct cc;

/* An acknowledgement of packets that were in flight. */
struct cc_ack {
    uint32_t packets;   /* acknowledged by it */
    uint32_t in_flight; /* before it came, these included */
    bool marked;        /* has BECN: one of them met congestion */
    picoseconds rtt;    /* since the newest of them left; 0: unknown */
};

struct cc_algorithm {
    const char *name;
    size_t priv_bytes;                                    /* of its own struct */
    const struct parameter_field *parameters, *variables; /* in that struct */
    bool needs_rtt; /* wants the round-trip time with each ACK */
    /* Any of these may be NULL. */
    /* Set-up only: the parameters are set. Checks them and initialises timers. False when one is
     * wrong. */
    bool (*init)(struct cc *cc);
    /* The rate of the line is known, and nothing sent yet. */
    void (*connected)(struct cc *cc);
    void (*sent)(struct cc *cc, uint32_t wire_bytes, picoseconds now);
    void (*acknowledged)(struct cc *cc, const struct cc_ack *ack, picoseconds now);
    void (*on_becn)(struct cc *cc, picoseconds now);
    void (*lost)(struct cc *cc, picoseconds now);
    /* The queue pair has failed, was reset, or ends: takes the timers off the clock, and returns to
     * the state before the first notification. */
    void (*stop)(struct cc *cc);
};

struct cc {
    const struct cc_algorithm *algorithm;
    void *priv;            /* the algorithm's struct */
    const uint16_t *table; /* of an algorithm that has one */
    uint32_t table_entries;
    struct clock *clock;
    uint64_t line_rate_bps;
    uint64_t rate_bps; /* 0: not limited */
    picoseconds gap;
    uint32_t window; /* 0: not limited */
    /* Called after a change of rate_bps or gap; may be NULL. */
    void (*changed)(struct cc *cc);
};

/* Set-up only. False when the algorithm is unknown, a parameter is unknown or wrong, or memory is
 * short. */
bool cc_init(struct cc *cc, struct arena *arena, struct clock *clock,
             const struct cc_config *config);

/* Gives the memory back. It must have been stopped, or never connected. */
void cc_free(struct cc *cc, struct arena *arena);

static inline void cc_connected(struct cc *cc, uint64_t line_rate_bps)
{
    cc->line_rate_bps = line_rate_bps;
    if (cc->algorithm->connected)
        cc->algorithm->connected(cc);
}

/* For algorithms: packets follow each other at this rate from now on. */
static inline void cc_set_rate(struct cc *cc, uint64_t rate_bps)
{
    if (rate_bps == cc->rate_bps)
        return;
    cc->rate_bps = rate_bps;
    if (cc->changed)
        cc->changed(cc);
}

/* For algorithms: at least this time lies between two packets from now on. */
static inline void cc_set_gap(struct cc *cc, picoseconds gap)
{
    if (gap == cc->gap)
        return;
    cc->gap = gap;
    if (cc->changed)
        cc->changed(cc);
}

/* A BECN arrived; false when it is ignored. */
static inline bool cc_on_becn(struct cc *cc, picoseconds now)
{
    if (cc->algorithm->on_becn)
        cc->algorithm->on_becn(cc, now);
    return cc->algorithm->on_becn;
}

static inline void cc_sent(struct cc *cc, uint32_t wire_bytes, picoseconds now)
{
    if (cc->algorithm->sent)
        cc->algorithm->sent(cc, wire_bytes, now);
}

static inline void cc_acknowledged(struct cc *cc, const struct cc_ack *ack, picoseconds now)
{
    if (cc->algorithm->acknowledged)
        cc->algorithm->acknowledged(cc, ack, now);
}

static inline void cc_lost(struct cc *cc, picoseconds now)
{
    if (cc->algorithm->lost)
        cc->algorithm->lost(cc, now);
}

static inline void cc_stop(struct cc *cc)
{
    if (cc->algorithm->stop)
        cc->algorithm->stop(cc);
}

/* How long after a packet of `wire_bytes` began the next one may. */
static inline picoseconds cc_gap(const struct cc *cc, uint32_t wire_bytes)
{
    picoseconds paced = cc->rate_bps ? serialisation(wire_bytes, cc->rate_bps) : 0;
    return paced > cc->gap ? paced : cc->gap;
}

#endif
