/* No congestion control: BECNs are ignored, senders go at line rate. */
#include "nic/cc.h"

const struct cc_algorithm cc_none = {.name = "none"};
