/* Scatter/gather lists: memory of a work request in several pieces. Offsets count from the first
 * byte of the first piece. The pieces are found by their keys whenever bytes are copied, since a
 * key may be invalidated at any time. */
#ifndef EMU_NIC_SGE_H
#define EMU_NIC_SGE_H

#include "nic/mr.h"

/* The bytes of all elements. */
uint64_t sges_length(const struct sge *sges, uint32_t count);

/* Whether all elements are in registered memory that grants `access`. One of no bytes needs none.
 */
bool sges_are_valid(const struct mr_table *table, uint32_t pd, const struct sge *sges,
                    uint32_t count, uint32_t access);

/* Copy `bytes` from `offset` on, which the list must have. Elided memory is left out. */
void sges_gather(const struct mr_table *table, uint32_t pd, const struct sge *sges, uint32_t offset,
                 uint8_t *to, uint32_t bytes);
void sges_scatter(const struct mr_table *table, uint32_t pd, const struct sge *sges,
                  uint32_t offset, const uint8_t *from, uint32_t bytes);

#endif
