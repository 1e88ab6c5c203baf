/* DCQCN as NVIDIA's NICs have it, by the parameters of `mlxconfig`, class
 * ROCE_CC_ECN (their help texts; the order of events as in the public ns-3 model
 * of HPCC's authors, its variant "mlx").
 *
 * Notification point: at most one CNP of a queue pair in MIN_TIME_BETWEEN_CNPS.
 *
 * Reaction point; Rc is the current rate, Rt the target rate:
 *     before the first CNP   no limit
 *     the first CNP          Rc = Rt = RATE_TO_SET_ON_FIRST_CNP,
 *                            alpha = INITIAL_ALPHA_VALUE
 *     every DCE_TCP_RTT      alpha = G alpha + (1 - G) (a CNP came in it), G = DCE_TCP_G
 *     a CNP                  one reduction, RATE_REDUCE_MONITOR_PERIOD after the first CNP
 *                            since the last reduction:
 *         Rt                   = Rc, when an increase that counts came since the last one
 *                              (CLAMP_TGT_RATE: always; by bytes: it does; by time: with
 *                              CLAMP_TGT_RATE_AFTER_TIME_INC)
 *         Rc                   = Rc max(1 - alpha 2^10 / 2^GD, MIN_DEC_FAC)
 *                              byte counter, timer and both stages start again
 *     RPG_BYTE_RESET bytes or RPG_TIME_RESET
 *                            one step of increase, then its stage + 1:
 *         fast recovery        max(stages) < THRESHOLD
 *         hyper increase       min(stages) > THRESHOLD      Rt = Rt + HAI_RATE
 *         additive increase    otherwise                    Rt = Rt + AI_RATE
 *                              and in each case             Rc = (Rc + Rt) / 2
 *     always                 RPG_MIN_RATE <= Rc, Rt <= RPG_MAX_RATE
 *
 * With RPG_BYTE_RESET 0 there is no byte counter, and the timer's stage alone
 * counts. At RPG_MAX_RATE the limiter is released; the next CNP is a first one. */
#include "cc.h"
#include "cc_math.h"

static void increase_timer(struct timer *timer, picoseconds now);
static void reduce_timer(struct timer *timer, picoseconds now);

static bool config_is_right(const struct roce_cc_ecn_config *config)
{
    return config->dce_tcp_g >= 0 && config->dce_tcp_g <= 1 && config->dce_tcp_rtt_ps > 0 &&
           config->rate_reduce_monitor_period_ps >= 0 && config->rpg_time_reset_ps > 0 &&
           config->rpg_gd < 64 && config->rpg_min_rate_bps > 0;
}

static bool nvidia_init(struct cc *cc, const struct qp_config *config)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    *own = (struct dcqcn_nvidia){.config = config->roce_cc_ecn};
    timer_init(&own->increase, increase_timer);
    timer_init(&own->reduce, reduce_timer);
    return config_is_right(&own->config);
}

static double max_rate(const struct cc *cc)
{
    uint64_t limit = cc->dcqcn_nvidia.config.rpg_max_rate_bps;
    return (double)(limit && limit < cc->line_rate_bps ? limit : cc->line_rate_bps);
}

static void release(struct cc *cc)
{
    cc->dcqcn_nvidia.limiting = false;
    cc->rate_bps = 0;
    timer_cancel(&cc->dcqcn_nvidia.increase);
}

static void set_rates(struct cc *cc, double current, double target)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    double low = (double)own->config.rpg_min_rate_bps, high = max_rate(cc);
    own->current_rate = clamp(current, low, high);
    own->target_rate = clamp(target, low, high);
    cc->rate_bps = (uint64_t)own->current_rate;
    /* Rc only halves its distance each time: closer than a bit per second is there. */
    if (high - own->current_rate < 1 && !timer_is_set(&own->reduce))
        release(cc);
}

/* Brings alpha up to date: the same numbers as a timer that fires every period. */
static void update_alpha(struct dcqcn_nvidia *own, picoseconds now)
{
    double keep = own->config.dce_tcp_g;
    picoseconds period = own->config.dce_tcp_rtt_ps;
    uint64_t periods = (uint64_t)((now - own->alpha_since) / period);
    if (!periods)
        return;
    own->alpha = keep * own->alpha + (1 - keep) * own->alpha_notified;
    own->alpha *= power(keep, periods - 1);
    own->alpha_notified = false;
    own->alpha_since += (picoseconds)periods * period;
}

static void start_again(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    own->bytes = 0;
    own->byte_stage = own->timer_stage = 0;
    own->last_increase = NO_INCREASE;
    timer_set(cc->clock, &own->increase, now + own->config.rpg_time_reset_ps);
}

static void begin(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    uint64_t first = own->config.rate_to_set_on_first_cnp_bps;
    own->limiting = true;
    own->alpha = own->config.initial_alpha_value;
    own->alpha_since = now;
    own->alpha_notified = false;
    start_again(cc, now);
    double rate = first ? (double)first : max_rate(cc);
    set_rates(cc, rate, rate);
}

static void nvidia_notified(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    if (!timer_is_set(&own->reduce))
        timer_set(cc->clock, &own->reduce, now + own->config.rate_reduce_monitor_period_ps);
    if (!own->limiting)
        begin(cc, now);
    update_alpha(own, now);
    own->alpha_notified = true;
}

static bool clamps_target(const struct dcqcn_nvidia *own)
{
    const struct roce_cc_ecn_config *config = &own->config;
    return config->clamp_tgt_rate || own->last_increase == INCREASE_BY_BYTES ||
           (own->last_increase == INCREASE_BY_TIME && config->clamp_tgt_rate_after_time_inc);
}

static void reduce_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn_nvidia *own = container_of(timer, struct dcqcn_nvidia, reduce);
    struct cc *cc = container_of(own, struct cc, dcqcn_nvidia);
    update_alpha(own, now);
    double factor = 1 - own->alpha * 1024 / (double)(UINT64_C(1) << own->config.rpg_gd);
    factor = clamp(factor, own->config.rpg_min_dec_fac, 1);
    double target = clamps_target(own) ? own->current_rate : own->target_rate;
    start_again(cc, now);
    set_rates(cc, own->current_rate * factor, target);
}

static void increase(struct cc *cc, enum increase_cause cause)
{
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    const struct roce_cc_ecn_config *config = &own->config;
    uint32_t timer = own->timer_stage, bytes = config->rpg_byte_reset ? own->byte_stage : timer;
    uint32_t least = bytes < timer ? bytes : timer, most = bytes < timer ? timer : bytes;
    double target = own->target_rate;
    if (least > config->rpg_threshold)
        target += (double)config->rpg_hai_rate_bps;
    else if (most >= config->rpg_threshold)
        target += (double)config->rpg_ai_rate_bps;
    target = clamp(target, 0, max_rate(cc));
    own->last_increase = cause;
    set_rates(cc, (own->current_rate + target) / 2, target);
}

static void increase_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn_nvidia *own = container_of(timer, struct dcqcn_nvidia, increase);
    struct cc *cc = container_of(own, struct cc, dcqcn_nvidia);
    timer_set(cc->clock, timer, now + own->config.rpg_time_reset_ps);
    increase(cc, INCREASE_BY_TIME);
    own->timer_stage++;
}

static void nvidia_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    (void)now;
    struct dcqcn_nvidia *own = &cc->dcqcn_nvidia;
    if (!own->limiting || !own->config.rpg_byte_reset)
        return;
    own->bytes += wire;
    if (own->bytes < own->config.rpg_byte_reset)
        return;
    own->bytes -= own->config.rpg_byte_reset;
    increase(cc, INCREASE_BY_BYTES);
    own->byte_stage++;
}

static void nvidia_stop(struct cc *cc)
{
    timer_cancel(&cc->dcqcn_nvidia.reduce);
    if (cc->dcqcn_nvidia.limiting)
        release(cc);
}

const struct cc_algorithm cc_dcqcn_nvidia = {
    .name = "dcqcn-nvidia",
    .init = nvidia_init,
    .notified = nvidia_notified,
    .sent = nvidia_sent,
    .stop = nvidia_stop,
};
