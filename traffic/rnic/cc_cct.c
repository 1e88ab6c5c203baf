/* InfiniBand's congestion control (IBTA vol 1, A10): an index into a table of delays.
 *
 *     BECN           CCTI = min(CCTI + CCTI_Increase, CCTI_Limit); CCTI_Timer runs
 *     CCTI_Timer     CCTI = CCTI - 1, down to CCTI_Min, where it stops
 *     injection      after a packet, the time it took times CCT[CCTI] before the next
 *
 * An entry of the table is a multiplier of 14 bits, shifted right by 0 to 3 bits.
 * Each queue pair has an index of its own. Left out: an index for a whole service
 * level (Port_Control), and the log of Trigger_Threshold. */
#include <stddef.h>

#include "cc.h"

enum { CCT_SHIFT_BITS = 14, CCT_MULTIPLIER = (1 << CCT_SHIFT_BITS) - 1 };

static void timer_fired(struct timer *timer, picoseconds now);

static bool cct_init(struct cc *cc, const struct qp_config *config)
{
    const struct cct_config *own = &config->cct;
    cc->cct = (struct cct){.config = *own, .ccti = own->ccti_min};
    timer_init(&cc->cct.timer, timer_fired);
    return own->cct && own->ccti_timer_ps > 0 && own->ccti_min <= own->ccti_limit;
}

/* The share of the line's rate that the injection delay leaves. */
static void set_rate(struct cc *cc)
{
    uint16_t entry = cc->cct.config.cct[cc->cct.ccti];
    uint64_t whole = UINT64_C(1) << (entry >> CCT_SHIFT_BITS);
    uint64_t delay = entry & CCT_MULTIPLIER;
    cc->rate_bps =
        delay ? (uint64_t)((double)cc->line_rate_bps * (double)whole / (double)(whole + delay)) : 0;
}

static void notified(struct cc *cc, picoseconds now)
{
    struct cct *cct = &cc->cct;
    uint32_t raised = cct->ccti + cct->config.ccti_increase;
    cct->ccti = raised < cct->config.ccti_limit ? (uint16_t)raised : cct->config.ccti_limit;
    set_rate(cc);
    if (!timer_is_set(&cct->timer) && cct->ccti > cct->config.ccti_min)
        timer_set(cc->clock, &cct->timer, now + cct->config.ccti_timer_ps);
}

static void timer_fired(struct timer *timer, picoseconds now)
{
    struct cct *cct = container_of(timer, struct cct, timer);
    struct cc *cc = container_of(cct, struct cc, cct);
    cct->ccti--;
    set_rate(cc);
    if (cct->ccti > cct->config.ccti_min)
        timer_set(cc->clock, timer, now + cct->config.ccti_timer_ps);
}

static void stop(struct cc *cc)
{
    timer_cancel(&cc->cct.timer);
}

const struct cc_algorithm cc_cct = {
    .name = "cct", .init = cct_init, .notified = notified, .stop = stop};
