/* Pieces of the core, to be tested one by one: plain prototypes, read by the binding as they stand
 * here. */
#ifndef EMU_API_PRIMITIVES_H
#define EMU_API_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next hop that ECMP gives an IPv4 packet (ecmp.h), of `count` ports. */
uint16_t core_ecmp(uint64_t seed, const uint8_t *header, uint32_t length, const uint16_t *ports,
                   uint16_t count);
uint16_t core_crc16(const uint8_t *bytes, size_t length);
/* The draw (wred.h) of a packet with these 28 bytes from its source address on. */
uint32_t core_wred_draw(uint32_t seed, const uint8_t bytes[28]);
bool core_wred_marks(uint32_t kmin_bytes, uint32_t kmax_bytes, uint32_t pmax_2_32,
                     uint32_t depth_bytes, uint32_t random);

#endif
