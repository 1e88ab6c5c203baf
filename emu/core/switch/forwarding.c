#include "switch/forwarding.h"

const struct forwarding_ops *const forwardings[FORWARDINGS] = {
    [FORWARDING_IPV4] = &forwarding_ipv4,
    [FORWARDING_VLAN] = &forwarding_vlan,
    [FORWARDING_LID] = &forwarding_lid,
};
