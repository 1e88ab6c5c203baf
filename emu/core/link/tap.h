/* Captures: copies of the frames at a port, in a ring of memory that the driver empties into a
 * file. One tap serves all captured ports of a process.
 *
 * A record, little-endian and padded to 8 bytes:
 *     time_ps i64 | packet_id u64 | port_index u32 | length u32 | stored u32 |
 *     kind u8 | direction u8 | zero u16 | bytes[stored]
 *
 * One thread captures. Another may remove records or read how many were missed. Each thread writes
 * only its own counts, and reads those of the other atomically.
 *
 * The time of an arriving frame is that of its last bit, the time of a leaving frame that of its
 * first bit.
 *
 * A packet has the same id at all captured ports. The first one that sees it gives it the id: its
 * index, and a count of its own in the lower 40 bits. So ids do not depend on what happens
 * elsewhere at the same time. */
#ifndef EMU_LINK_TAP_H
#define EMU_LINK_TAP_H

#include "sim/frame.h"

enum tap_direction { TAP_IN = 1, TAP_OUT = 2 }; /* as in epb_flags of pcapng */

enum { TAP_HEADER_BYTES = 32 };

struct tap {
    uint8_t *ring;
    size_t size;         /* bytes, a power of two */
    uint64_t head, tail; /* bytes written and removed so far */
    uint64_t missed;     /* records that found no room */
    uint64_t *missed_at; /* the same for each port */
    uint64_t *ids;       /* packets that each port has given an id */
};

/* Set-up only; `size` is a power of two. False when there is no memory. */
bool tap_init(struct tap *tap, size_t size, uint32_t ports);
void tap_free(struct tap *tap);

void tap_frame(struct tap *tap, uint32_t port_index, struct frame *frame,
               enum tap_direction direction, picoseconds at);

/* The next contiguous bytes to write to a file (0: none). `tap_taken` frees them. */
size_t tap_pending(const struct tap *tap, const uint8_t **bytes);
void tap_taken(struct tap *tap, size_t size);

/* For any thread: bytes that were not removed yet, and records that found no room. */
size_t tap_waiting(const struct tap *tap);
uint64_t tap_missed(const struct tap *tap);
uint64_t tap_missed_at(const struct tap *tap, uint32_t port_index);

#endif
