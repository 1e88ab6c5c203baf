#include "headers/roce.h"

enum { FLOW_LABEL_MASK = 0xFFFFF };

/* As in Linux: rdma_calc_flow_label, then rdma_flow_label_to_udp_sport
 * (include/rdma/ib_verbs.h). */
uint16_t roce_source_port(uint32_t qpn, uint32_t remote_qpn)
{
    uint64_t v = (uint64_t)qpn * remote_qpn;
    v ^= v >> 20;
    v ^= v >> 40;
    uint32_t label = (uint32_t)v & FLOW_LABEL_MASK;
    return (uint16_t)(((label & 0x3FFF) ^ label >> 14) | 0xC000);
}
