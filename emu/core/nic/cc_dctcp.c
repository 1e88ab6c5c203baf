/* DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257), with the window in packets: the share of marked
 * packets determines how much a sender slows down.
 *
 *     once a window   F = packets marked / packets acknowledged
 *                     alpha = (1-g) alpha + g F; alpha = 1 at first
 *     an ACK          without a mark: cwnd + 1 for each packet until the first mark (slow
 *                     start), then cwnd + 1 for each window
 *                     with BECN: cwnd = cwnd (1 - alpha/2), once a window; cwnd does not grow
 *                     in that window
 *     a loss          cwnd = cwnd / 2, once a window
 *     always          1 <= cwnd <= max_cwnd; cwnd grows only while it is what limits the packets in
 *                     flight
 *
 * Switches mark above one queue depth K (kmin = kmax = K). TCP's ECE reports on each ACK whether a
 * packet arrived marked. RoCEv2 has no field for that. The BTH has BECN, which InfiniBand's ACKs
 * use, and this model uses it on both (see notification_point.h). An ACK covers several packets
 * only when the packets could not be acknowledged one by one; then a mark counts for all of them.
 */
#include "nic/cc.h"
#include "nic/cc_math.h"

struct dctcp {
    double g, initial_cwnd, max_cwnd;
    double cwnd, alpha;
    double acknowledged, marked; /* packets since alpha was updated */
    uint32_t until_update;       /* packets to be acknowledged before the next update */
    uint32_t until_cut;          /* packets to be acknowledged before cwnd may be cut again */
    bool slow_start;
};

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(dctcp, g),
    PARAMETER_FIELD(dctcp, initial_cwnd),
    PARAMETER_FIELD(dctcp, max_cwnd),
    {0},
};

static const struct parameter_field variables[] = {
    PARAMETER_FIELD(dctcp, cwnd),
    PARAMETER_FIELD(dctcp, alpha),
    {0},
};

static void set_window(struct cc *cc, double cwnd)
{
    struct dctcp *dctcp = cc->priv;
    dctcp->cwnd = clamp(cwnd, 1, dctcp->max_cwnd);
    cc->window = (uint32_t)dctcp->cwnd;
}

static bool dctcp_init(struct cc *cc)
{
    struct dctcp *dctcp = cc->priv;
    dctcp->alpha = 1;
    dctcp->slow_start = true;
    set_window(cc, dctcp->initial_cwnd);
    return dctcp->g > 0 && dctcp->g <= 1 && dctcp->initial_cwnd >= 1 && dctcp->max_cwnd >= 1;
}

static void observe(struct dctcp *dctcp, const struct cc_ack *ack)
{
    dctcp->acknowledged += ack->packets;
    dctcp->marked += ack->marked ? ack->packets : 0;
    dctcp->until_update = less(dctcp->until_update, ack->packets);
    if (dctcp->until_update)
        return;
    double share = dctcp->marked / dctcp->acknowledged;
    dctcp->alpha = (1 - dctcp->g) * dctcp->alpha + dctcp->g * share;
    dctcp->acknowledged = dctcp->marked = 0;
    dctcp->until_update = ack->in_flight - ack->packets;
}

static void cut(struct cc *cc, double factor, uint32_t in_flight)
{
    struct dctcp *dctcp = cc->priv;
    dctcp->slow_start = false;
    if (dctcp->until_cut)
        return;
    dctcp->until_cut = in_flight;
    set_window(cc, dctcp->cwnd * factor);
}

static void grow(struct cc *cc, const struct cc_ack *ack)
{
    struct dctcp *dctcp = cc->priv;
    if (dctcp->until_cut || ack->in_flight < cc->window)
        return;
    double step = dctcp->slow_start ? 1 : 1 / dctcp->cwnd;
    set_window(cc, dctcp->cwnd + ack->packets * step);
}

static void dctcp_acknowledged(struct cc *cc, const struct cc_ack *ack, picoseconds now)
{
    (void)now;
    struct dctcp *dctcp = cc->priv;
    observe(dctcp, ack);
    dctcp->until_cut = less(dctcp->until_cut, ack->packets);
    if (ack->marked)
        cut(cc, 1 - dctcp->alpha / 2, ack->in_flight - ack->packets);
    else
        grow(cc, ack);
}

static void dctcp_lost(struct cc *cc, picoseconds now)
{
    (void)now;
    cut(cc, 0.5, cc->window);
}

static const struct cc_algorithm dctcp = {
    .name = "dctcp",
    .priv_bytes = sizeof(struct dctcp),
    .parameters = parameters,
    .variables = variables,
    .init = dctcp_init,
    .acknowledged = dctcp_acknowledged,
    .lost = dctcp_lost,
};

REGISTER(cc_algorithms, dctcp)
