/* Single functions of the core, for their tests. */
#include "api/primitives.h"

#include <string.h>

#include "headers/crc16.h"
#include "switch/ecmp.h"
#include "switch/wred.h"

uint16_t core_crc16(const uint8_t *bytes, size_t length)
{
    return crc16(bytes, length);
}

uint32_t core_wred_draw(uint32_t seed, const uint8_t bytes[28])
{
    struct wred wred = {.seed = seed};
    uint32_t words[WRED_DRAW_WORDS];
    memcpy(words, bytes, sizeof words);
    return wred_draw(&wred, words);
}

bool core_wred_marks(uint32_t kmin_bytes, uint32_t kmax_bytes, uint32_t pmax_2_32,
                     uint32_t depth_bytes, uint32_t random)
{
    struct wred wred = {kmin_bytes, kmax_bytes, pmax_2_32, 0, 1};
    return wred_marks(&wred, depth_bytes, random);
}

uint16_t core_ecmp(uint64_t seed, const uint8_t *header, uint32_t length, const uint16_t *ports,
                   uint16_t count)
{
    return ecmp_choose(ecmp_basis(seed, header, length), ports, count);
}
