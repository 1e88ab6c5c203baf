/* Packet sequence numbers: 24 bits that wrap.
 *
 * The half before a number is its past, the half after it its future, so that
 * no more than PSN_WINDOW packets of a queue pair may be in flight. */
#ifndef EMU_NIC_PSN_H
#define EMU_NIC_PSN_H

#include <stdint.h>

enum { PSN_MASK = 0xFFFFFF, PSN_WINDOW = 0x7FFFFF };

/* How far `psn` is ahead of `reference`; negative when it is behind. */
static inline int32_t psn_ahead(uint32_t psn, uint32_t reference)
{
    uint32_t difference = (psn - reference) & PSN_MASK;
    return difference <= PSN_WINDOW ? (int32_t)difference : (int32_t)difference - (PSN_MASK + 1);
}

static inline uint32_t psn_next(uint32_t psn)
{
    return (psn + 1) & PSN_MASK;
}

#endif
