/* A channel: an AF_PACKET socket that sends and receives frames, several in a system call. It knows
 * network interfaces, not cables: a received frame carries the pointer that was attached to its
 * interface.
 *
 * Frames are received by a ring (ring.h), or by recvmmsg where rings would take too much memory:
 * each ring belongs to one channel, while all channels share the room for messages. Either way the
 * bytes stay in place until the channel is released. */
#ifndef EMU_DRIVER_CHANNEL_H
#define EMU_DRIVER_CHANNEL_H

#include <linux/if_packet.h>
#include <sys/socket.h>

#include "driver/ring.h"
#include "driver/rx_frame.h"
#include "sim/frame.h"

enum {
    SEND_BATCH = 64,
    RECEIVE_BATCH = 128,
    CONTROL_BYTES = 128, /* a time stamp and a tpacket_auxdata */
};

/* Memory for up to RECEIVE_BATCH received messages. */
struct receive_room {
    struct mmsghdr messages[RECEIVE_BATCH];
    struct iovec vectors[RECEIVE_BATCH];
    struct sockaddr_ll senders[RECEIVE_BATCH];
    uint8_t controls[RECEIVE_BATCH][CONTROL_BYTES];
    uint8_t *buffers;
};

/* Set-up only. False: no memory. */
bool receive_room_init(struct receive_room *room, uint32_t frame_bytes);
void receive_room_free(struct receive_room *room);

struct outgoing {
    struct frame *owned; /* freed once it is sent; NULL: the frame belongs to the caller */
    picoseconds due;
};

struct channel {
    int fd;
    struct ring ring;
    struct receive_room *room;
    void **attached; /* by ifindex */
    uint32_t attached_size;
    uint32_t count;         /* frames waiting to be sent */
    uint32_t first_refused; /* the first of them that the kernel refused, if it refused any */
    struct outgoing outgoing[SEND_BATCH];
    struct mmsghdr messages[SEND_BATCH];
    struct iovec parts[SEND_BATCH][2];
};

/* Set-up only. With `ring_frames` it gets a ring, if the kernel has memory for it.
 * The socket stays the caller's. NULL: no memory. */
struct channel *channel_new(int fd, struct receive_room *room, uint32_t frame_bytes,
                            uint32_t ring_frames);
void channel_free(struct channel *channel);
/* False: no memory. */
bool channel_attach(struct channel *channel, uint32_t ifindex, void *attached);

/* Receives waiting frames into `rx_frames`, which has space for RECEIVE_BATCH frames and holds
 * `used` already; returns how many it holds now. A frame that was too long, or whose interface is
 * not attached, has no bytes. Stamps are CLOCK_MONOTONIC's. */
uint32_t channel_receive(struct channel *channel, struct rx_frame *rx_frames, uint32_t used);
/* The rx_frames' bytes are no longer needed. */
static inline void channel_release(struct channel *channel)
{
    if (channel->ring.taken)
        ring_release(&channel->ring);
}

/* Queues a frame to be sent. False: the queue is full now and must be flushed. */
bool channel_queue(struct channel *channel, struct sockaddr_ll *to, const struct frame *frame,
                   struct outgoing outgoing);
/* Sends all queued frames, which stay in `outgoing` until `count` is set to 0. Returns how many the
 * kernel refused. */
uint32_t channel_flush(struct channel *channel);

/* Frames that found the socket's buffer or ring full since the last call. */
uint32_t channel_drops(struct channel *channel);

#endif
