/* No congestion control: CNPs are ignored, senders go at line rate. */
#include "cc.h"

static bool none_init(struct cc *cc, const struct qp_config *config)
{
    (void)cc;
    (void)config;
    return true;
}

const struct cc_algorithm cc_none = {.name = "none", .init = none_init};
