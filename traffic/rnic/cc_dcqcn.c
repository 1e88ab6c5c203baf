/* DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
 * SIGCOMM'15), by its names: Rc the current rate, Rt the target rate.
 *
 *     before the first CNP     no limit; Rc = Rt = line rate, alpha = 1
 *     a CNP                    Rt = Rc; Rc = Rc (1 - alpha/2); alpha = (1-g) alpha + g;
 *                              byte counter, timer and both stages start again
 *     alpha timer without CNP  alpha = (1-g) alpha
 *     byte counter or timer    its stage + 1, then one step of increase:
 *       fast recovery            max(stages) < F
 *       hyper increase           min(stages) > F     Rt = Rt + (min(stages) - F) Rhai
 *       additive increase        otherwise           Rt = Rt + Rai
 *                              and in each case      Rc = (Rc + Rt) / 2
 *     always                   Rmin <= Rc, Rt <= line rate
 *
 * Alpha is brought up to date when it is next needed; that gives the same
 * numbers as a timer that fires in vain most of the time. Back at line rate the
 * limiter is released, its timer stops, and alpha goes on fading. */
#include "cc.h"
#include "cc_math.h"

static void increase_timer(struct timer *timer, picoseconds now);

static bool config_is_right(const struct dcqcn_config *config)
{
    return config->g > 0 && config->g <= 1 && config->min_rate_bps > 0 &&
           config->byte_counter_bytes > 0 && config->alpha_timer_ps > 0 &&
           config->increase_timer_ps > 0;
}

static bool dcqcn_init(struct cc *cc, const struct qp_config *config)
{
    cc->dcqcn = (struct dcqcn){.config = config->dcqcn, .alpha = 1, .alpha_since = NEVER};
    timer_init(&cc->dcqcn.increase, increase_timer);
    return config_is_right(&config->dcqcn);
}

static void fade_alpha(struct dcqcn *dcqcn, picoseconds now)
{
    if (dcqcn->alpha_since == NEVER)
        return;
    uint64_t periods = (uint64_t)((now - dcqcn->alpha_since) / dcqcn->config.alpha_timer_ps);
    dcqcn->alpha *= power(1 - dcqcn->config.g, periods);
}

static void release(struct cc *cc)
{
    cc->dcqcn.limiting = false;
    cc->rate_bps = 0;
    timer_cancel(&cc->dcqcn.increase);
}

static void set_rates(struct cc *cc, double current, double target)
{
    struct dcqcn *dcqcn = &cc->dcqcn;
    double low = (double)dcqcn->config.min_rate_bps, high = (double)cc->line_rate_bps;
    dcqcn->current_rate = clamp(current, low, high);
    dcqcn->target_rate = clamp(target, low, high);
    cc->rate_bps = (uint64_t)dcqcn->current_rate;
    /* Rc only halves its distance each time: closer than a bit per second is there. */
    if (high - dcqcn->current_rate < 1)
        release(cc);
}

static void dcqcn_notified(struct cc *cc, picoseconds now)
{
    struct dcqcn *dcqcn = &cc->dcqcn;
    const struct dcqcn_config *config = &dcqcn->config;
    if (!dcqcn->limiting)
        dcqcn->current_rate = (double)cc->line_rate_bps;
    dcqcn->limiting = true;
    fade_alpha(dcqcn, now);
    dcqcn->alpha_since = now;
    dcqcn->bytes = 0;
    dcqcn->byte_stage = dcqcn->timer_stage = 0;
    timer_set(cc->clock, &dcqcn->increase, now + config->increase_timer_ps);
    set_rates(cc, dcqcn->current_rate * (1 - dcqcn->alpha / 2), dcqcn->current_rate);
    dcqcn->alpha = (1 - config->g) * dcqcn->alpha + config->g;
}

static void increase(struct cc *cc)
{
    struct dcqcn *dcqcn = &cc->dcqcn;
    const struct dcqcn_config *config = &dcqcn->config;
    uint32_t bytes = dcqcn->byte_stage, timer = dcqcn->timer_stage;
    uint32_t least = bytes < timer ? bytes : timer, most = bytes < timer ? timer : bytes;
    double target = dcqcn->target_rate;
    if (least > config->fast_recovery)
        target += (double)(least - config->fast_recovery) * (double)config->rhai_bps;
    else if (most >= config->fast_recovery)
        target += (double)config->rai_bps;
    target = clamp(target, 0, (double)cc->line_rate_bps);
    set_rates(cc, (dcqcn->current_rate + target) / 2, target);
}

static void increase_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn *dcqcn = container_of(timer, struct dcqcn, increase);
    struct cc *cc = container_of(dcqcn, struct cc, dcqcn);
    timer_set(cc->clock, timer, now + dcqcn->config.increase_timer_ps);
    dcqcn->timer_stage++;
    increase(cc);
}

static void dcqcn_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    (void)now;
    struct dcqcn *dcqcn = &cc->dcqcn;
    if (!dcqcn->limiting)
        return;
    dcqcn->bytes += wire;
    if (dcqcn->bytes < dcqcn->config.byte_counter_bytes)
        return;
    dcqcn->bytes -= dcqcn->config.byte_counter_bytes;
    dcqcn->byte_stage++;
    increase(cc);
}

static void dcqcn_stop(struct cc *cc)
{
    if (cc->dcqcn.limiting)
        release(cc);
}

const struct cc_algorithm cc_dcqcn = {
    .name = "dcqcn",
    .init = dcqcn_init,
    .notified = dcqcn_notified,
    .sent = dcqcn_sent,
    .stop = dcqcn_stop,
};
