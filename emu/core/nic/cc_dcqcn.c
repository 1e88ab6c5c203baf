/* DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM'15), with the
 * names of the paper: Rc is the current rate, Rt the target rate.
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
 * Alpha has no timer: it is computed when it is needed, with the same result. At line rate the
 * limit ends and its timer stops; alpha continues to decrease. */
#include "nic/cc.h"
#include "nic/cc_math.h"

struct dcqcn {
    double g, rai, rhai, min_rate, byte_counter, fast_recovery, alpha_timer, increase_timer;
    double current_rate, target_rate; /* 0 while there is no limit */
    double alpha;
    picoseconds alpha_since; /* the time that alpha is valid for; NEVER before the first CNP */
    double bytes;            /* since the last event of the byte counter */
    uint32_t byte_stage, timer_stage;
    struct timer increase;
    struct cc *cc;
};

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(dcqcn, g),
    PARAMETER_FIELD(dcqcn, rai),
    PARAMETER_FIELD(dcqcn, rhai),
    PARAMETER_FIELD(dcqcn, min_rate),
    PARAMETER_FIELD(dcqcn, byte_counter),
    PARAMETER_FIELD(dcqcn, fast_recovery),
    PARAMETER_FIELD(dcqcn, alpha_timer),
    PARAMETER_FIELD(dcqcn, increase_timer),
    {0},
};

static const struct parameter_field variables[] = {
    PARAMETER_FIELD(dcqcn, current_rate),
    PARAMETER_FIELD(dcqcn, target_rate),
    {0},
};

static void increase_timer(struct timer *timer, picoseconds now);

static bool dcqcn_init(struct cc *cc)
{
    struct dcqcn *dcqcn = cc->priv;
    dcqcn->cc = cc;
    dcqcn->alpha = 1;
    dcqcn->alpha_since = NEVER;
    timer_init(&dcqcn->increase, increase_timer);
    return dcqcn->g > 0 && dcqcn->g <= 1 && dcqcn->min_rate > 0 && dcqcn->byte_counter > 0 &&
           dcqcn->alpha_timer >= 1 && dcqcn->increase_timer >= 1;
}

static void fade_alpha(struct dcqcn *dcqcn, picoseconds now)
{
    if (dcqcn->alpha_since == NEVER)
        return;
    uint64_t periods = (uint64_t)((now - dcqcn->alpha_since) / (picoseconds)dcqcn->alpha_timer);
    dcqcn->alpha *= power(1 - dcqcn->g, periods);
}

static void release(struct cc *cc)
{
    struct dcqcn *dcqcn = cc->priv;
    dcqcn->current_rate = dcqcn->target_rate = 0;
    cc_set_rate(cc, 0);
    timer_cancel(&dcqcn->increase);
}

static void set_rates(struct cc *cc, double current, double target)
{
    struct dcqcn *dcqcn = cc->priv;
    double low = dcqcn->min_rate, high = (double)cc->line_rate_bps;
    dcqcn->current_rate = clamp(current, low, high);
    dcqcn->target_rate = clamp(target, low, high);
    cc_set_rate(cc, (uint64_t)dcqcn->current_rate);
    /* Rc would only halve its distance again and again: within 1 bit/s it has arrived. */
    if (high - dcqcn->current_rate < 1)
        release(cc);
}

static void dcqcn_on_becn(struct cc *cc, picoseconds now)
{
    struct dcqcn *dcqcn = cc->priv;
    double rate = cc->rate_bps ? dcqcn->current_rate : (double)cc->line_rate_bps;
    fade_alpha(dcqcn, now);
    dcqcn->alpha_since = now;
    dcqcn->bytes = 0;
    dcqcn->byte_stage = dcqcn->timer_stage = 0;
    timer_set_background(cc->clock, &dcqcn->increase, now + (picoseconds)dcqcn->increase_timer);
    set_rates(cc, rate * (1 - dcqcn->alpha / 2), rate);
    dcqcn->alpha = (1 - dcqcn->g) * dcqcn->alpha + dcqcn->g;
}

static void increase(struct cc *cc)
{
    struct dcqcn *dcqcn = cc->priv;
    uint32_t bytes = dcqcn->byte_stage, timer = dcqcn->timer_stage;
    uint32_t least = bytes < timer ? bytes : timer, most = bytes < timer ? timer : bytes;
    double target = dcqcn->target_rate;
    if (least > dcqcn->fast_recovery)
        target += (least - dcqcn->fast_recovery) * dcqcn->rhai;
    else if (most >= dcqcn->fast_recovery)
        target += dcqcn->rai;
    target = clamp(target, 0, (double)cc->line_rate_bps);
    set_rates(cc, (dcqcn->current_rate + target) / 2, target);
}

static void increase_timer(struct timer *timer, picoseconds now)
{
    struct dcqcn *dcqcn = container_of(timer, struct dcqcn, increase);
    timer_set_background(dcqcn->cc->clock, timer, now + (picoseconds)dcqcn->increase_timer);
    dcqcn->timer_stage++;
    increase(dcqcn->cc);
}

static void dcqcn_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    (void)now;
    struct dcqcn *dcqcn = cc->priv;
    if (!cc->rate_bps)
        return;
    dcqcn->bytes += wire;
    if (dcqcn->bytes < dcqcn->byte_counter)
        return;
    dcqcn->bytes -= dcqcn->byte_counter;
    dcqcn->byte_stage++;
    increase(cc);
}

static void dcqcn_stop(struct cc *cc)
{
    struct dcqcn *dcqcn = cc->priv;
    if (cc->rate_bps)
        release(cc);
    timer_remove(cc->clock, &dcqcn->increase);
}

static const struct cc_algorithm dcqcn = {
    .name = "dcqcn",
    .priv_bytes = sizeof(struct dcqcn),
    .parameters = parameters,
    .variables = variables,
    .init = dcqcn_init,
    .on_becn = dcqcn_on_becn,
    .sent = dcqcn_sent,
    .stop = dcqcn_stop,
};

REGISTER(cc_algorithms, dcqcn)
