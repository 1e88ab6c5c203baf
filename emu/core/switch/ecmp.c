#include "switch/ecmp.h"

#include <stdbool.h>
#include <string.h>

#include "headers/roce.h"

enum {
    PROTOCOL_UDP = 17,
    FRAGMENT_OFFSET = 0x1FFF,
    DEST_QP = 8 + 5, /* offset from the UDP header; 3 bytes */
};

/* MurmurHash3, 32 bits: one step for each word, then the last step. */
static uint32_t take_in(uint32_t hash, uint32_t word)
{
    word *= 0xCC9E2D51u;
    word = word << 15 | word >> 17;
    hash ^= word * 0x1B873593u;
    hash = hash << 13 | hash >> 19;
    return hash * 5 + 0xE6546B64u;
}

static uint32_t finish(uint32_t hash, uint32_t bytes)
{
    hash ^= bytes;
    hash ^= hash >> 16;
    hash *= 0x85EBCA6Bu;
    hash ^= hash >> 13;
    hash *= 0xC2B2AE35u;
    return hash ^ hash >> 16;
}

/* Hashes a field of 2 to 4 bytes of the packet, read little-endian. */
static uint32_t field(uint32_t basis, const uint8_t *bytes, uint32_t size)
{
    uint32_t word = 0;
    for (uint32_t i = size; i-- > 0;)
        word = word << 8 | bytes[i];
    return finish(take_in(basis, word), size);
}

static uint32_t two_words(uint32_t first, uint32_t second)
{
    return finish(take_in(take_in(first, 0), second), 8);
}

const uint8_t *udp_ports(const uint8_t *header, uint32_t length)
{
    uint32_t ports = (header[0] & 0x0F) * 4u;
    bool later_fragment = ((header[6] << 8 | header[7]) & FRAGMENT_OFFSET) != 0;
    bool has_ports = header[9] == PROTOCOL_UDP && !later_fragment && length >= ports + 4;
    return has_ports ? header + ports : NULL;
}

uint32_t ecmp_basis(uint64_t seed, const uint8_t *header, uint32_t length)
{
    uint32_t basis = finish(take_in(take_in(0, (uint32_t)seed), (uint32_t)(seed >> 32)), 8);
    basis = field(basis, header + 12, 4);
    basis = field(basis, header + 16, 4);
    const uint8_t *ports = udp_ports(header, length);
    return ports ? field(field(basis, ports, 2), ports + 2, 2) : basis;
}

uint32_t ecmp_basis_of_qp(uint32_t basis, const uint8_t *header, uint32_t length)
{
    const uint8_t *udp = udp_ports(header, length);
    bool is_roce =
        udp && udp + DEST_QP + 3 <= header + length && (udp[2] << 8 | udp[3]) == ROCE_UDP_PORT;
    return is_roce ? field(basis, udp + DEST_QP, 3) : basis;
}

uint16_t ecmp_choose(uint32_t basis, const uint16_t *ports, uint16_t count)
{
    uint16_t chosen = ports[0];
    uint32_t best = 0;
    for (uint16_t i = 0; i < count; i++) {
        uint32_t score = two_words(ports[i], basis) & 0xFFFF;
        if (score >= best) {
            best = score;
            chosen = ports[i];
        }
    }
    return chosen;
}
