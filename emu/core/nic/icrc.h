/* The invariant CRC: the last four bytes of every packet, least significant
 * byte first.
 *
 * It is Ethernet's CRC-32 over all that no switch may change. What a switch
 * does change counts as all ones:
 *
 *     RoCEv2   eight bytes in place of the LRH; of IPv4 the type of service,
 *              time to live and checksum; the UDP checksum
 *     IB       the virtual lane in the LRH; in a packet with a GRH all of the LRH, and of the
 *              GRH traffic class, flow label and hop limit
 *     both     BTH byte 4 (FECN, BECN, reserved)
 *
 * Left out: IPv6. */
#ifndef EMU_NIC_ICRC_H
#define EMU_NIC_ICRC_H

#include <stdint.h>

/* From the IPv4 header through the pad; at least IPv4, UDP and BTH must be there. */
uint32_t icrc_roce_ipv4(const uint8_t *ip, uint32_t length);

/* From the LRH through the pad; at least LRH and BTH must be there. */
uint32_t icrc_ib_local(const uint8_t *lrh, uint32_t length);
/* The same of a packet that has a GRH. */
uint32_t icrc_ib_global(const uint8_t *lrh, uint32_t length);

#endif
