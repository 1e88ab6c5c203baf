/* The 16-bit CRC of InfiniBand's VCRC and LPCRC: polynomial 0x100B, reflected
 * 0xD008, all ones before and after (IBTA vol 1, 7.8.2). Sent low byte first. */
#ifndef EMU_HEADERS_CRC16_H
#define EMU_HEADERS_CRC16_H

#include <stddef.h>
#include <stdint.h>

uint16_t crc16(const uint8_t *bytes, size_t length);

#endif
