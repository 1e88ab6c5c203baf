#include "nic/sge.h"

#include <string.h>

uint64_t sges_length(const struct sge *sges, uint32_t count)
{
    uint64_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += sges[i].length;
    return length;
}

bool sges_are_valid(const struct mr_table *table, uint32_t pd, const struct sge *sges,
                    uint32_t count, uint32_t access)
{
    uint8_t *bytes;
    for (const struct sge *sge = sges; sge < sges + count; sge++)
        if (sge->length && !mr_find(table, pd, sge->lkey, sge->addr, sge->length, access, &bytes))
            return false;
    return true;
}

/* A part of an element that is copied at once. */
struct piece {
    uint8_t *bytes; /* NULL: elided, or no longer registered */
    uint32_t length;
};

/* The next piece, of at most `most` bytes. Moves list and offset behind it. */
static struct piece next_piece(const struct mr_table *table, uint32_t pd, const struct sge **sges,
                               uint32_t *offset, uint32_t most)
{
    while (*offset >= (*sges)->length)
        *offset -= (*sges)++->length;
    const struct sge *sge = *sges;
    uint32_t left = sge->length - *offset;
    struct piece piece = {.length = left < most ? left : most};
    mr_find(table, pd, sge->lkey, sge->addr + *offset, piece.length, 0, &piece.bytes);
    *offset += piece.length;
    return piece;
}

void sges_gather(const struct mr_table *table, uint32_t pd, const struct sge *sges, uint32_t offset,
                 uint8_t *to, uint32_t bytes)
{
    while (bytes) {
        struct piece piece = next_piece(table, pd, &sges, &offset, bytes);
        if (piece.bytes)
            memcpy(to, piece.bytes, piece.length);
        to += piece.length;
        bytes -= piece.length;
    }
}

void sges_scatter(const struct mr_table *table, uint32_t pd, const struct sge *sges,
                  uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    while (bytes) {
        struct piece piece = next_piece(table, pd, &sges, &offset, bytes);
        if (piece.bytes)
            memcpy(piece.bytes, from, piece.length);
        from += piece.length;
        bytes -= piece.length;
    }
}
