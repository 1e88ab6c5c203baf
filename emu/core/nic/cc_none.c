/* No congestion control: senders ignore BECNs and send at line rate. */
#include "nic/cc.h"

static const struct cc_algorithm none = {.name = "none"};

REGISTER(cc_algorithms, none)
