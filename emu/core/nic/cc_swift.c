/* Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
 * Datacenter", SIGCOMM'20): the window keeps the round-trip time near a target.
 *
 *     target delay    base_target + clamp(a / sqrt(cwnd) + b, 0, fs_range), so that flows with a
 *                     small window accept more delay; a and b make that term fs_range
 *                     at fs_min_cwnd and zero at fs_max_cwnd
 *     delay < target  cwnd + ai for each window of packets; below 1, ai for each packet
 *     delay >= target cwnd * max(1 - beta (delay - target) / delay, 1 - max_mdf), once a round trip
 *     a loss          cwnd * (1 - max_mdf), once a round trip
 *     always          min_cwnd <= cwnd <= max_cwnd; cwnd grows only while it is what limits the
 *                     packets in flight
 *     cwnd < 1        one packet in a time of round trip / cwnd
 *
 * The delay is measured from the first byte of a packet to its ACK: the NIC is hardware and answers
 * at once. Left out: a second window for the delay in the receiving host, a target that grows with
 * the number of hops, and a larger cut after several timeouts. */
#include <math.h>

#include "nic/cc.h"
#include "nic/cc_math.h"

struct swift {
    double base_target, fs_range, fs_min_cwnd, fs_max_cwnd;
    double ai, beta, max_mdf;
    double min_cwnd, initial_cwnd, max_cwnd;
    double cwnd;
    double fs_alpha, fs_beta; /* a and b */
    picoseconds rtt;          /* the newest measurement */
    picoseconds cut_at;
};

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(swift, base_target),
    PARAMETER_FIELD(swift, fs_range),
    PARAMETER_FIELD(swift, fs_min_cwnd),
    PARAMETER_FIELD(swift, fs_max_cwnd),
    PARAMETER_FIELD(swift, ai),
    PARAMETER_FIELD(swift, beta),
    PARAMETER_FIELD(swift, max_mdf),
    PARAMETER_FIELD(swift, min_cwnd),
    PARAMETER_FIELD(swift, initial_cwnd),
    PARAMETER_FIELD(swift, max_cwnd),
    {0},
};

static const struct parameter_field variables[] = {PARAMETER_FIELD(swift, cwnd), {0}};

static void set_window(struct cc *cc, double cwnd)
{
    struct swift *swift = cc->priv;
    swift->cwnd = clamp(cwnd, swift->min_cwnd, swift->max_cwnd);
    cc->window = swift->cwnd < 1 ? 1 : (uint32_t)swift->cwnd;
    cc_set_gap(cc, swift->cwnd < 1 ? (picoseconds)((double)swift->rtt / swift->cwnd) : 0);
}

static bool swift_init(struct cc *cc)
{
    struct swift *swift = cc->priv;
    double low = 1 / sqrt(swift->fs_max_cwnd), high = 1 / sqrt(swift->fs_min_cwnd);
    if (!(swift->min_cwnd > 0 && swift->max_cwnd >= 1 && swift->fs_min_cwnd > 0 && high > low))
        return false;
    swift->fs_alpha = swift->fs_range / (high - low);
    swift->fs_beta = -swift->fs_alpha * low;
    set_window(cc, swift->initial_cwnd);
    return swift->max_mdf > 0 && swift->max_mdf < 1;
}

static double target(const struct swift *swift)
{
    double scaled = swift->fs_alpha / sqrt(swift->cwnd) + swift->fs_beta;
    return swift->base_target + clamp(scaled, 0, swift->fs_range);
}

static void grow(struct cc *cc, const struct cc_ack *ack)
{
    const struct swift *swift = cc->priv;
    double step = swift->cwnd < 1 ? swift->ai : swift->ai / swift->cwnd;
    if (ack->in_flight >= cc->window)
        set_window(cc, swift->cwnd + ack->packets * step);
}

static void cut(struct cc *cc, double factor, picoseconds now)
{
    struct swift *swift = cc->priv;
    if (now - swift->cut_at < swift->rtt)
        return;
    swift->cut_at = now;
    set_window(cc, swift->cwnd * fmax(factor, 1 - swift->max_mdf));
}

static void swift_acknowledged(struct cc *cc, const struct cc_ack *ack, picoseconds now)
{
    struct swift *swift = cc->priv;
    if (!ack->rtt)
        return;
    swift->rtt = ack->rtt;
    double delay = (double)ack->rtt, wanted = target(swift);
    if (delay < wanted)
        grow(cc, ack);
    else
        cut(cc, 1 - swift->beta * (delay - wanted) / delay, now);
}

static void swift_lost(struct cc *cc, picoseconds now)
{
    cut(cc, 0, now);
}

static const struct cc_algorithm swift = {
    .name = "swift",
    .priv_bytes = sizeof(struct swift),
    .parameters = parameters,
    .variables = variables,
    .needs_rtt = true,
    .init = swift_init,
    .acknowledged = swift_acknowledged,
    .lost = swift_lost,
};

REGISTER(cc_algorithms, swift)
