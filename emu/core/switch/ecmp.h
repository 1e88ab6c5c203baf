/* Which of several equal next hops a flow takes: the choice of Open vSwitch's
 * `select` groups with selection_method=hash, so that a flow takes the same path
 * whether the switches forward for themselves or Open vSwitch does.
 *
 *     basis   MurmurHash3 over the seed, then over each hashed field in turn:
 *             source and destination address, and for UDP both ports
 *     score   of a next hop: MurmurHash3 of its port number and the basis, 16 bits
 *     choice  the highest score; of equal ones the last
 *
 * Scores make the choice stable: when a next hop goes, only its flows move. */
#ifndef EMU_SWITCH_ECMP_H
#define EMU_SWITCH_ECMP_H

#include <stdint.h>

/* `header`: an IPv4 header of which `length` bytes are there, its own length included. */
uint32_t ecmp_basis(uint64_t seed, const uint8_t *header, uint32_t length);

/* The same, and over the destination QP of a RoCE packet: more than Open vSwitch can
 * read. Other packets keep their basis. */
uint32_t ecmp_basis_of_qp(uint32_t basis, const uint8_t *header, uint32_t length);

uint16_t ecmp_choose(uint32_t basis, const uint16_t *ports, uint16_t count);

#endif
