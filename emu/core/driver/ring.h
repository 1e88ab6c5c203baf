/* Receives frames without a system call: the kernel writes each into a slot of shared memory
 * (packet_mmap, TPACKET_V2).
 *
 * The status of a slot says whether the kernel or this process owns it. Slots are taken and given
 * back in their order. If the next slot has not been given back, the kernel drops the frame and
 * counts it in PACKET_STATISTICS.
 *
 * TPACKET_V3 packs frames tighter, but hands them over only when a block is full or a timer of at
 * least a millisecond expires. That is too late here. */
#ifndef EMU_DRIVER_RING_H
#define EMU_DRIVER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rx_frame;

struct ring {
    uint8_t *memory; /* NULL: there is no ring */
    size_t size;
    uint32_t slot_bytes, slots_per_block, slots;
    uint32_t next;  /* slot that is taken next */
    uint32_t taken; /* slots before `next` that are not released yet */
};

/* Gives the socket a ring of about `slots` frames of at most `frame_bytes` each. False when the
 * kernel has no memory for it; then the socket is unchanged. */
bool ring_open(struct ring *ring, int fd, uint32_t slots, uint32_t frame_bytes);
void ring_close(struct ring *ring);

/* Takes the next slot if there is a frame in it; the frame's bytes stay until ring_release. Of a
 * frame longer than a slot only the first bytes are there. The stamp is CLOCK_REALTIME's. */
bool ring_take(struct ring *ring, struct rx_frame *rx);
/* Releases all slots taken: the kernel may fill them again. */
void ring_release(struct ring *ring);

#endif
