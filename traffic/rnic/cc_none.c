/* No congestion control: marks are counted and CNPs ignored, senders go at line rate. */
#include "cc.h"

static bool none_init(struct cc *cc, const struct qp_config *config)
{
    (void)cc;
    (void)config;
    return true;
}

static bool none_congestion_seen(struct cc *cc, picoseconds now)
{
    (void)cc;
    (void)now;
    return false;
}

static bool none_notified(struct cc *cc, picoseconds now)
{
    (void)cc;
    (void)now;
    return false;
}

static void none_sent(struct cc *cc, uint32_t wire, picoseconds now)
{
    (void)cc;
    (void)wire;
    (void)now;
}

static void none_stop(struct cc *cc)
{
    (void)cc;
}

const struct cc_algorithm cc_none = {
    .name = "none",
    .init = none_init,
    .congestion_seen = none_congestion_seen,
    .notified = none_notified,
    .sent = none_sent,
    .stop = none_stop,
};
