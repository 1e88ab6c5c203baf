/* DCQCN as in NVIDIA's NICs, with the parameters of `mlxconfig`, class ROCE_CC_ECN. Sources are
 * their help texts and, for the order of events, the public ns-3 model of HPCC's authors, variant
 * "mlx".
 *
 * Notification point: at most one CNP of a queue pair in MIN_TIME_BETWEEN_CNPS.
 *
 * Reaction point; Rc is the current rate, Rt the target rate:
 *     before the first CNP   no limit
 *     the first CNP          Rc = Rt = RATE_TO_SET_ON_FIRST_CNP,
 *                            alpha = INITIAL_ALPHA_VALUE
 *     every DCE_TCP_RTT      alpha = G alpha + (1 - G) (1 if a CNP came in it, else 0),
 *                            G = DCE_TCP_G
 *     a CNP                  one reduction, RATE_REDUCE_MONITOR_PERIOD after the first CNP
 *                            since the last reduction:
 *         Rt                   = Rc, if an increase came since the last reduction (by bytes, or
 *                              by time with CLAMP_TGT_RATE_AFTER_TIME_INC), or always with
 *                              CLAMP_TGT_RATE
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
 * With RPG_BYTE_RESET 0 there is no byte counter, and only the stage of the timer counts. At
 * RPG_MAX_RATE the limit ends; the next CNP counts as a first one. */
#include "nic/cc.h"
#include "nic/cc_math.h"

enum increase_cause { NO_INCREASE, INCREASE_BY_BYTES, INCREASE_BY_TIME };

struct dcqcn_nvidia {
    double clamp_tgt_rate, clamp_tgt_rate_after_time_inc; /* 0 or 1 */
    double rpg_time_reset, rpg_byte_reset, rpg_threshold;
    double rpg_max_rate; /* 0: line rate */
    double rpg_ai_rate, rpg_hai_rate, rpg_gd, rpg_min_dec_fac, rpg_min_rate;
    double rate_to_set_on_first_cnp; /* 0: rpg_max_rate */
    double dce_tcp_g, dce_tcp_rtt, rate_reduce_monitor_period, initial_alpha_value;
    double current_rate, target_rate; /* 0 while there is no limit */
    double alpha;
    picoseconds alpha_since; /* start of the period that alpha is valid for */
    bool alpha_becn;         /* a CNP arrived in that period */
    double bytes;            /* since the last event of the byte counter */
    uint32_t byte_stage, timer_stage;
    enum increase_cause last_increase; /* since the last reduction */
    struct timer increase, reduce;
    struct cc *cc;
};

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(dcqcn_nvidia, clamp_tgt_rate),
    PARAMETER_FIELD(dcqcn_nvidia, clamp_tgt_rate_after_time_inc),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_time_reset),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_byte_reset),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_threshold),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_max_rate),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_ai_rate),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_hai_rate),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_gd),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_min_dec_fac),
    PARAMETER_FIELD(dcqcn_nvidia, rpg_min_rate),
    PARAMETER_FIELD(dcqcn_nvidia, rate_to_set_on_first_cnp),
    PARAMETER_FIELD(dcqcn_nvidia, dce_tcp_g),
    PARAMETER_FIELD(dcqcn_nvidia, dce_tcp_rtt),
    PARAMETER_FIELD(dcqcn_nvidia, rate_reduce_monitor_period),
    PARAMETER_FIELD(dcqcn_nvidia, initial_alpha_value),
    {0},
};

static const struct parameter_field variables[] = {
    PARAMETER_FIELD(dcqcn_nvidia, current_rate),
    PARAMETER_FIELD(dcqcn_nvidia, target_rate),
    {0},
};

static void increase_timer(struct timer *timer, picoseconds now);
static void reduce_timer(struct timer *timer, picoseconds now);

static bool nvidia_init(struct cc *cc)
{
    struct dcqcn_nvidia *own = cc->priv;
    own->cc = cc;
    timer_init(&own->increase, increase_timer);
    timer_init(&own->reduce, reduce_timer);
    return own->dce_tcp_g >= 0 && own->dce_tcp_g <= 1 && own->dce_tcp_rtt >= 1 &&
           own->rate_reduce_monitor_period >= 0 && own->rpg_time_reset >= 1 && own->rpg_gd >= 0 &&
           own->rpg_gd < 64 && own->rpg_min_rate > 0;
}

static double max_rate(const struct cc *cc)
{
    const struct dcqcn_nvidia *own = cc->priv;
    double limit = own->rpg_max_rate, line = (double)cc->line_rate_bps;
    return limit > 0 && limit < line ? limit : line;
}

static void release(struct cc *cc)
{
    struct dcqcn_nvidia *own = cc->priv;
    own->current_rate = own->target_rate = 0;
    cc_set_rate(cc, 0);
    timer_cancel(&own->increase);
}

static void set_rates(struct cc *cc, double current, double target)
{
    struct dcqcn_nvidia *own = cc->priv;
    double low = own->rpg_min_rate, high = max_rate(cc);
    own->current_rate = clamp(current, low, high);
    own->target_rate = clamp(target, low, high);
    cc_set_rate(cc, (uint64_t)own->current_rate);
    /* Rc would only halve its distance again and again: within 1 bit/s it has arrived. */
    if (high - own->current_rate < 1 && !timer_is_set(&own->reduce))
        release(cc);
}

/* Updates alpha for all periods since the last update, with the result of a periodic timer. */
static void update_alpha(struct dcqcn_nvidia *own, picoseconds now)
{
    double keep = own->dce_tcp_g;
    picoseconds period = (picoseconds)own->dce_tcp_rtt;
    uint64_t periods = (uint64_t)((now - own->alpha_since) / period);
    if (!periods)
        return;
    own->alpha = keep * own->alpha + (1 - keep) * own->alpha_becn;
    own->alpha *= power(keep, periods - 1);
    own->alpha_becn = false;
    own->alpha_since += (picoseconds)periods * period;
}

static void start_again(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = cc->priv;
    own->bytes = 0;
    own->byte_stage = own->timer_stage = 0;
    own->last_increase = NO_INCREASE;
    timer_set_background(cc->clock, &own->increase, now + (picoseconds)own->rpg_time_reset);
}

static void begin(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = cc->priv;
    own->alpha = own->initial_alpha_value;
    own->alpha_since = now;
    own->alpha_becn = false;
    start_again(cc, now);
    double rate = own->rate_to_set_on_first_cnp;
    if (rate <= 0)
        rate = max_rate(cc);
    set_rates(cc, rate, rate);
}

static void nvidia_on_becn(struct cc *cc, picoseconds now)
{
    struct dcqcn_nvidia *own = cc->priv;
    if (!timer_is_set(&own->reduce))
        timer_set_background(cc->clock, &own->reduce,
                             now + (picoseconds)own->rate_reduce_monitor_period);
    if (!cc->rate_bps)
        begin(cc, now);
    update_alpha(own, now);
    own->alpha_becn = true;
}

static bool clamps_target(const struct dcqcn_nvidia *own)
{
    return own->clamp_tgt_rate != 0 || own->last_increase == INCREASE_BY_BYTES ||
           (own->last_increase == INCREASE_BY_TIME && own->clamp_tgt_rate_after_time_inc != 0);
}

static void reduce_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn_nvidia *own = container_of(timer, struct dcqcn_nvidia, reduce);
    struct cc *cc = own->cc;
    update_alpha(own, now);
    double factor = 1 - own->alpha * 1024 / power(2, (uint64_t)own->rpg_gd);
    factor = clamp(factor, own->rpg_min_dec_fac, 1);
    double target = clamps_target(own) ? own->current_rate : own->target_rate;
    start_again(cc, now);
    set_rates(cc, own->current_rate * factor, target);
}

static void increase(struct cc *cc, enum increase_cause cause)
{
    struct dcqcn_nvidia *own = cc->priv;
    uint32_t timer = own->timer_stage, bytes = own->rpg_byte_reset > 0 ? own->byte_stage : timer;
    uint32_t least = bytes < timer ? bytes : timer, most = bytes < timer ? timer : bytes;
    double target = own->target_rate;
    if (least > own->rpg_threshold)
        target += own->rpg_hai_rate;
    else if (most >= own->rpg_threshold)
        target += own->rpg_ai_rate;
    target = clamp(target, 0, max_rate(cc));
    own->last_increase = cause;
    set_rates(cc, (own->current_rate + target) / 2, target);
}

static void increase_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn_nvidia *own = container_of(timer, struct dcqcn_nvidia, increase);
    timer_set_background(own->cc->clock, timer, now + (picoseconds)own->rpg_time_reset);
    increase(own->cc, INCREASE_BY_TIME);
    own->timer_stage++;
}

static void nvidia_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    (void)now;
    struct dcqcn_nvidia *own = cc->priv;
    if (!cc->rate_bps || own->rpg_byte_reset <= 0)
        return;
    own->bytes += wire;
    if (own->bytes < own->rpg_byte_reset)
        return;
    own->bytes -= own->rpg_byte_reset;
    increase(cc, INCREASE_BY_BYTES);
    own->byte_stage++;
}

static void nvidia_stop(struct cc *cc)
{
    struct dcqcn_nvidia *own = cc->priv;
    if (cc->rate_bps)
        release(cc);
    timer_remove(cc->clock, &own->reduce);
    timer_remove(cc->clock, &own->increase);
}

static const struct cc_algorithm dcqcn_nvidia = {
    .name = "dcqcn-nvidia",
    .priv_bytes = sizeof(struct dcqcn_nvidia),
    .parameters = parameters,
    .variables = variables,
    .init = nvidia_init,
    .on_becn = nvidia_on_becn,
    .sent = nvidia_sent,
    .stop = nvidia_stop,
};

REGISTER(cc_algorithms, dcqcn_nvidia)
