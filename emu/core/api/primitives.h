/* Single functions of the core, for their tests: plain prototypes, which the binding reads. */
#ifndef EMU_API_PRIMITIVES_H
#define EMU_API_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The port that ECMP chooses for an IPv4 packet among `count` ports (ecmp.h). */
uint16_t core_ecmp(uint64_t seed, const uint8_t *header, uint32_t length, const uint16_t *ports,
                   uint16_t count);
uint16_t core_crc16(const uint8_t *bytes, size_t length);
/* The random number (wred.h) of a packet with these 28 bytes from its source address on. */
uint32_t core_wred_draw(uint32_t seed, const uint8_t bytes[28]);
bool core_wred_marks(uint32_t kmin_bytes, uint32_t kmax_bytes, uint32_t pmax_2_32,
                     uint32_t depth_bytes, uint32_t random);

#endif
