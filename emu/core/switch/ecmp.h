/* Which of several equal next hops a flow takes. The choice is that of Open vSwitch's `select`
 * groups with selection_method=hash, so that a flow takes the same path in the switches' own
 * datapath and in Open vSwitch.
 *
 *     basis   MurmurHash3 of the seed, then of each hashed field in turn:
 *             source and destination address, and for UDP both ports
 *     score   of a next hop: MurmurHash3 of its port number and the basis, 16 bits
 *     choice  the highest score; of equal ones the last
 *
 * Scores make the choice stable: when a next hop disappears, only its flows move. */
#ifndef EMU_SWITCH_ECMP_H
#define EMU_SWITCH_ECMP_H

#include <stdint.h>

/* The UDP ports of a packet, source first; NULL: it is not UDP, or a later fragment, or too short.
 * `header` is an IPv4 header; `length` bytes are stored from there on. */
const uint8_t *udp_ports(const uint8_t *header, uint32_t length);

/* The basis of a packet. `header` is an IPv4 header; `length` bytes are stored from there on. */
uint32_t ecmp_basis(uint64_t seed, const uint8_t *header, uint32_t length);

/* Extends the basis of a RoCE packet by its destination QP, which Open vSwitch cannot read. Other
 * packets keep their basis. */
uint32_t ecmp_basis_of_qp(uint32_t basis, const uint8_t *header, uint32_t length);

uint16_t ecmp_choose(uint32_t basis, const uint16_t *ports, uint16_t count);

#endif
