#define _GNU_SOURCE /* sendmmsg, recvmmsg */

#include "driver/channel.h"

#include <stdlib.h>
#include <string.h>

#include "driver/walltime.h"
#include "headers/ib_encap.h"

enum { UNSTAMPED = -1 };

/* ---- room for messages ------------------------------------------------------- */

static void clear_message(struct receive_room *room, uint32_t slot)
{
    struct msghdr *header = &room->messages[slot].msg_hdr;
    header->msg_namelen = sizeof room->senders[slot];
    header->msg_controllen = sizeof room->controls[slot];
    header->msg_flags = 0;
}

bool receive_room_init(struct receive_room *room, uint32_t frame_bytes)
{
    size_t stride = VLAN_TAG_BYTES + frame_bytes;
    room->buffers = malloc(RECEIVE_BATCH * stride);
    if (!room->buffers)
        return false;
    for (uint32_t slot = 0; slot < RECEIVE_BATCH; slot++) {
        room->vectors[slot] =
            (struct iovec){room->buffers + slot * stride + VLAN_TAG_BYTES, frame_bytes};
        room->messages[slot].msg_hdr = (struct msghdr){.msg_name = &room->senders[slot],
                                                       .msg_iov = &room->vectors[slot],
                                                       .msg_iovlen = 1,
                                                       .msg_control = room->controls[slot]};
        clear_message(room, slot);
    }
    return true;
}

void receive_room_free(struct receive_room *room)
{
    free(room->buffers);
    room->buffers = NULL;
}

/* ---- receiving ------------------------------------------------------------------ */

/* The first of several stamps is the software's. */
static void take_stamp(struct rx_frame *rx, const struct cmsghdr *control)
{
    struct timespec stamp;
    memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
    rx->stamp_ns = timespec_ns(stamp);
}

static void take_vlan_tag(struct rx_frame *rx, const struct cmsghdr *control)
{
    struct tpacket_auxdata aux;
    memcpy(&aux, CMSG_DATA(control), sizeof aux);
    if (aux.tp_status & TP_STATUS_VLAN_VALID)
        rx_frame_restore_vlan_tag(rx, aux.tp_vlan_tpid, aux.tp_vlan_tci);
}

/* The stamp is CLOCK_REALTIME's, or UNSTAMPED. */
static void take_message(struct receive_room *room, uint32_t slot, struct rx_frame *rx)
{
    struct msghdr *header = &room->messages[slot].msg_hdr;
    *rx = (struct rx_frame){.bytes = room->vectors[slot].iov_base,
                            .length = room->messages[slot].msg_len,
                            .ifindex = (uint32_t)room->senders[slot].sll_ifindex,
                            .stamp_ns = UNSTAMPED};
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control;
         control = CMSG_NXTHDR(header, control))
        if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_TIMESTAMPING)
            take_stamp(rx, control);
        else if (control->cmsg_level == SOL_PACKET && control->cmsg_type == PACKET_AUXDATA)
            take_vlan_tag(rx, control);
    clear_message(room, slot);
}

/* The kernel begins to stamp frames some time after a socket asks for it (net_enable_timestamp in
 * Linux' net/core/dev.c). A frame without a stamp came no later than the frames behind it. */
static void stamp_others(struct rx_frame *rx_frames, uint32_t used, uint32_t end, int64_t now_ns)
{
    for (int64_t latest_ns = now_ns; end > used; end--) {
        struct rx_frame *rx = &rx_frames[end - 1];
        if (rx->stamp_ns == UNSTAMPED)
            rx->stamp_ns = latest_ns;
        latest_ns = rx->stamp_ns;
    }
}

static uint32_t receive_messages(struct channel *channel, struct rx_frame *rx_frames, uint32_t used,
                                 int64_t now_ns)
{
    struct receive_room *room = channel->room;
    /* MSG_TRUNC: the result is the frame's length, even if it was cut short. */
    int count = recvmmsg(channel->fd, room->messages + used, RECEIVE_BATCH - used,
                         MSG_DONTWAIT | MSG_TRUNC, NULL);
    uint32_t end = count > 0 ? used + (uint32_t)count : used;
    for (uint32_t slot = used; slot < end; slot++)
        take_message(room, slot, &rx_frames[slot]);
    stamp_others(rx_frames, used, end, now_ns);
    return end;
}

static uint32_t receive_by_ring(struct ring *ring, struct rx_frame *rx_frames, uint32_t used)
{
    while (used < RECEIVE_BATCH && ring_take(ring, &rx_frames[used]))
        used++;
    return used;
}

uint32_t channel_receive(struct channel *channel, struct rx_frame *rx_frames, uint32_t used)
{
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    int64_t to_monotonic = clock_ns(CLOCK_MONOTONIC) - now_ns;
    uint32_t end = channel->ring.memory ? receive_by_ring(&channel->ring, rx_frames, used)
                                        : receive_messages(channel, rx_frames, used, now_ns);
    for (; used < end; used++) {
        struct rx_frame *rx = &rx_frames[used];
        rx->stamp_ns += to_monotonic;
        if (rx->ifindex < channel->attached_size)
            rx->to = channel->attached[rx->ifindex];
        if (!rx->to)
            rx->bytes = NULL;
    }
    return end;
}

/* ---- sending ---------------------------------------------------------------------- */

bool channel_queue(struct channel *channel, struct sockaddr_ll *to, const struct frame *frame,
                   struct outgoing outgoing)
{
    uint32_t slot = channel->count++;
    struct iovec *parts = channel->parts[slot];
    size_t count = 0;
    assert(frame_is_whole(frame));
    if (frame->kind != FRAME_ETHERNET)
        parts[count++] = (struct iovec){(void *)ib_encap_header(frame), IB_ENCAP_BYTES};
    parts[count++] = (struct iovec){frame->bytes, frame->length};
    channel->messages[slot].msg_hdr = (struct msghdr){
        .msg_name = to, .msg_namelen = sizeof *to, .msg_iov = parts, .msg_iovlen = count};
    channel->outgoing[slot] = outgoing;
    return channel->count < SEND_BATCH;
}

uint32_t channel_flush(struct channel *channel)
{
    uint32_t refused = 0;
    for (uint32_t done = 0; done < channel->count;) {
        int sent = sendmmsg(channel->fd, channel->messages + done, channel->count - done, 0);
        if (sent <= 0) {
            if (!refused++)
                channel->first_refused = done;
            sent = 1; /* this message is given up */
        }
        done += (uint32_t)sent;
    }
    return refused;
}

/* ---- lost frames ------------------------------------------------------------------ */

uint32_t channel_drops(struct channel *channel)
{
    struct tpacket_stats stats = {0}; /* reading resets the kernel's counts */
    socklen_t size = sizeof stats;
    getsockopt(channel->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
    return stats.tp_drops;
}

/* ---- set-up ------------------------------------------------------------------------ */

struct channel *channel_new(int fd, struct receive_room *room, uint32_t frame_bytes,
                            uint32_t ring_frames)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->fd = fd;
    channel->room = room;
    if (ring_frames)
        ring_open(&channel->ring, fd, ring_frames, frame_bytes);
    return channel;
}

void channel_free(struct channel *channel)
{
    ring_close(&channel->ring);
    free(channel->attached);
    free(channel);
}

bool channel_attach(struct channel *channel, uint32_t ifindex, void *attached)
{
    if (ifindex >= channel->attached_size) {
        uint32_t size = 2 * (ifindex + 1);
        void **grown = realloc(channel->attached, size * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + channel->attached_size, 0, (size - channel->attached_size) * sizeof *grown);
        channel->attached = grown;
        channel->attached_size = size;
    }
    channel->attached[ifindex] = attached;
    return true;
}
