/* Congestion control of InfiniBand (IBTA vol 1, A10): an index into a table of delays.
 *
 *     first          CCTI = CCTI_Min
 *     BECN           CCTI = min(CCTI + CCTI_Increase, CCTI_Limit); CCTI_Timer runs
 *     CCTI_Timer     CCTI = CCTI - 1, down to CCTI_Min, where the timer stops
 *     injection      after a packet, a delay of its transmission time times CCT[CCTI]
 *
 * An entry of the table is a multiplier of 14 bits, shifted right by 0 to 3 bits.
 * Each queue pair has an index of its own. Left out: one index for a whole service level
 * (Port_Control), and the log of Trigger_Threshold. */
#include <stddef.h>

#include "nic/cc.h"

enum { CCT_SHIFT_BITS = 14, CCT_MULTIPLIER = (1 << CCT_SHIFT_BITS) - 1 };

struct cct {
    double ccti_increase, ccti_min, ccti_timer;
    uint32_t ccti_limit; /* last index of the table */
    uint32_t ccti;       /* index into the table */
    struct timer timer;
    struct cc *cc;
};

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(cct, ccti_increase),
    PARAMETER_FIELD(cct, ccti_min),
    PARAMETER_FIELD(cct, ccti_timer),
    {0},
};

static void timer_fired(struct timer *timer, picoseconds now);

static bool cct_init(struct cc *cc)
{
    struct cct *cct = cc->priv;
    cct->cc = cc;
    cct->ccti_limit = cc->table_entries - 1;
    cct->ccti = (uint32_t)cct->ccti_min;
    timer_init(&cct->timer, timer_fired);
    return cc->table_entries && cct->ccti_timer >= 1 && cct->ccti_min >= 0 &&
           cct->ccti_min <= cct->ccti_limit;
}

/* Sets the share of the line rate that the injection delay leaves. */
static void set_rate(struct cc *cc)
{
    const struct cct *cct = cc->priv;
    uint16_t entry = cc->table[cct->ccti];
    uint64_t whole = UINT64_C(1) << (entry >> CCT_SHIFT_BITS);
    uint64_t delay = entry & CCT_MULTIPLIER;
    double share = (double)whole / (double)(whole + delay);
    cc_set_rate(cc, delay ? (uint64_t)((double)cc->line_rate_bps * share) : 0);
}

static void run_timer(struct cct *cct, picoseconds now)
{
    if (cct->ccti > cct->ccti_min)
        timer_set_background(cct->cc->clock, &cct->timer, now + (picoseconds)cct->ccti_timer);
}

static void on_becn(struct cc *cc, picoseconds now)
{
    struct cct *cct = cc->priv;
    uint32_t raised = cct->ccti + (uint32_t)cct->ccti_increase;
    cct->ccti = raised < cct->ccti_limit ? raised : cct->ccti_limit;
    set_rate(cc);
    if (!timer_is_set(&cct->timer))
        run_timer(cct, now);
}

static void timer_fired(struct timer *timer, picoseconds now)
{
    struct cct *cct = container_of(timer, struct cct, timer);
    cct->ccti--;
    set_rate(cct->cc);
    run_timer(cct, now);
}

static void stop(struct cc *cc)
{
    struct cct *cct = cc->priv;
    timer_remove(cc->clock, &cct->timer);
    cct->ccti = (uint32_t)cct->ccti_min;
    set_rate(cc);
}

static const struct cc_algorithm cct = {
    .name = "cct",
    .priv_bytes = sizeof(struct cct),
    .parameters = parameters,
    .init = cct_init,
    .connected = set_rate,
    .on_becn = on_becn,
    .stop = stop,
};

REGISTER(cc_algorithms, cct)
