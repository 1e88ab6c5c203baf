/* Slicing by eight: eight table look-ups take in eight bytes at once. */
#include "headers/crc16.h"

#include <string.h>

enum { POLYNOMIAL_REFLECTED = 0xD008, SLICES = 8 };

static uint16_t table[SLICES][256];

__attribute__((constructor)) static void fill_table(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint16_t crc = (uint16_t)byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 1 ? crc >> 1 ^ POLYNOMIAL_REFLECTED : crc >> 1);
        table[0][byte] = crc;
    }
    for (unsigned slice = 1; slice < SLICES; slice++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint16_t crc = table[slice - 1][byte];
            table[slice][byte] = (uint16_t)(crc >> 8 ^ table[0][crc & 0xFF]);
        }
}

uint16_t crc16(const uint8_t *bytes, size_t length)
{
    uint16_t crc = 0xFFFF;
    for (; length >= SLICES; bytes += SLICES, length -= SLICES)
        crc = table[7][bytes[0] ^ (crc & 0xFF)] ^ table[6][bytes[1] ^ (crc >> 8)] ^
              table[5][bytes[2]] ^ table[4][bytes[3]] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^
              table[1][bytes[6]] ^ table[0][bytes[7]];
    for (; length > 0; bytes++, length--)
        crc = (uint16_t)(crc >> 8 ^ table[0][(crc ^ *bytes) & 0xFF]);
    return (uint16_t)~crc;
}
