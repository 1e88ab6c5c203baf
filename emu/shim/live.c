#define _GNU_SOURCE /* sendmmsg, recvmmsg, epoll_pwait2 */

#include "live.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fabric.h"
#include "ledger.h"

enum {
    RECEIVE_BATCH = 256,
    SEND_BATCH = 64,
    CHANNELS = 1100,
    CARRIER_BYTES = 14,
    MAC_ADDRESSES = 12,
    VLAN_TAG = 4,
    ETHERTYPE_IB_PACKET = 0x88B5, /* IEEE's first local experimental ethertype */
    ETHERTYPE_IB_LINK = 0x88B6,   /* and the second */
    CONTROL_BYTES = 128,          /* a time stamp and a tpacket_auxdata */
    WAKE = CHANNELS,
    NS_PER_S = 1000000000,
};

/* A packet must be flushed before it can be given up as lost on the other side. */
#define STEP_NS INT64_C(20000000)
#define TRANSIT_TIMEOUT_NS INT64_C(200000000)

enum { LATE_SENT, LATE_RETURNED, PLANE_KEPT, HISTOGRAMS };

struct attachment {
    struct channel *channel;
    struct port *end;         /* a cable end, or NULL: */
    struct fabric_switch *sw; /* a switch port's way to the forwarding plane */
    uint32_t number;
    struct sockaddr_ll address;
};

/* InfiniBand packets cross an Ethernet device inside a 14-byte carrier header. */
static const uint8_t carriers[2][CARRIER_BYTES] = {
    {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE_IB_PACKET >> 8, ETHERTYPE_IB_PACKET & 0xFF},
    {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE_IB_LINK >> 8, ETHERTYPE_IB_LINK & 0xFF},
};

struct channel {
    int fd;
    uint32_t count; /* messages waiting to be sent */
    struct mmsghdr messages[SEND_BATCH];
    struct iovec parts[SEND_BATCH][2];
    struct frame *frames[SEND_BATCH]; /* freed once sent; NULL: still in transit */
    picoseconds due[SEND_BATCH];
    struct attachment **by_ifindex;
    uint32_t ifindices;
};

struct received {
    struct attachment *from;
    int64_t stamp_ns; /* CLOCK_MONOTONIC */
    uint8_t *bytes;
    uint32_t length;
    uint32_t order;
};

struct live {
    struct fabric *fabric;
    double slowdown;
    int64_t t0_ns;
    int epoll_fd;
    const bool *finished;
    struct channel *channels[CHANNELS];
    int channel_count;
    struct attachment **by_index; /* by port index */
    struct histogram histograms[HISTOGRAMS];
    struct timeline timeline;
    uint64_t sent, received, send_failures;
    struct received inbox[RECEIVE_BATCH];
    uint32_t inbox_count;
    struct mmsghdr headers[RECEIVE_BATCH];
    struct iovec vectors[RECEIVE_BATCH];
    struct sockaddr_ll senders[RECEIVE_BATCH];
    uint8_t controls[RECEIVE_BATCH][CONTROL_BYTES];
    uint8_t *buffers;
    uint32_t buffer_bytes;
};

/* ---- two clocks ---------------------------------------------------------------- */

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static picoseconds emulated(const struct live *live, int64_t wall_ns)
{
    return (picoseconds)((double)(wall_ns - live->t0_ns) * PS_PER_NS / live->slowdown);
}

static int64_t wall(const struct live *live, picoseconds at)
{
    return live->t0_ns + (int64_t)((double)at * live->slowdown / PS_PER_NS);
}

static void note_late(struct live *live, int which, int64_t late_ns, int64_t now_ns)
{
    histogram_add(&live->histograms[which], late_ns);
    timeline_note(&live->timeline, now_ns - live->t0_ns, late_ns);
}

/* ---- sending --------------------------------------------------------------------- */

static void flush(struct live *live, struct channel *channel)
{
    uint32_t done = 0;
    while (done < channel->count) {
        int sent = sendmmsg(channel->fd, channel->messages + done, channel->count - done, 0);
        if (sent <= 0) {
            live->send_failures++;
            sent = 1; /* this message is given up */
        }
        done += (uint32_t)sent;
    }
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < channel->count; i++) {
        if (!channel->frames[i])
            continue;
        note_late(live, LATE_SENT, now_ns - wall(live, channel->due[i]), now_ns);
        frame_free(&live->fabric->pool, channel->frames[i]);
    }
    live->sent += channel->count;
    channel->count = 0;
}

static void flush_all(struct live *live)
{
    for (int i = 0; i < live->channel_count; i++)
        if (live->channels[i]->count)
            flush(live, live->channels[i]);
}

static void queue_message(struct live *live, struct attachment *to, const struct frame *frame,
                          struct frame *owned, picoseconds due)
{
    struct channel *channel = to->channel;
    uint32_t slot = channel->count++;
    struct iovec *parts = channel->parts[slot];
    int count = 0;
    if (frame->kind != FRAME_ETHERNET)
        parts[count++] =
            (struct iovec){(void *)carriers[frame->kind == FRAME_IB_LINK], CARRIER_BYTES};
    assert(frame_is_whole(frame));
    parts[count++] = (struct iovec){frame->bytes, frame->length};
    channel->messages[slot].msg_hdr = (struct msghdr){.msg_name = &to->address,
                                                      .msg_namelen = sizeof to->address,
                                                      .msg_iov = parts,
                                                      .msg_iovlen = (size_t)count};
    channel->frames[slot] = owned;
    channel->due[slot] = due;
    if (channel->count == SEND_BATCH)
        flush(live, channel);
}

static void emit(void *driver, struct port *end, struct frame *frame, picoseconds now)
{
    struct live *live = driver;
    struct attachment *to = live->by_index[end->index];
    if (to)
        queue_message(live, to, frame, frame, now);
    else
        frame_free(&live->fabric->pool, frame);
}

static void hand_over(void *outer, struct switch_port *in, const struct frame *frame,
                      picoseconds now)
{
    struct live *live = outer;
    queue_message(live, live->by_index[in->port.index], frame, NULL, now);
}

/* ---- receiving -------------------------------------------------------------------- */

static int64_t kernel_stamp(struct msghdr *header, int64_t fallback_ns, int64_t realtime_offset)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            return (int64_t)stamp.tv_sec * NS_PER_S + stamp.tv_nsec - realtime_offset;
        }
    return fallback_ns;
}

/* The kernel takes a VLAN tag out of the frame and tells it beside; here it goes
 * back, into the room that is kept before the frame. */
static uint32_t restore_vlan_tag(struct msghdr *header, uint8_t **bytes)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        struct tpacket_auxdata aux;
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
            continue;
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
            return 0;
        uint8_t tag[VLAN_TAG] = {(uint8_t)(aux.tp_vlan_tpid >> 8), (uint8_t)aux.tp_vlan_tpid,
                                 (uint8_t)(aux.tp_vlan_tci >> 8), (uint8_t)aux.tp_vlan_tci};
        *bytes -= VLAN_TAG;
        memmove(*bytes, *bytes + VLAN_TAG, MAC_ADDRESSES);
        memcpy(*bytes + MAC_ADDRESSES, tag, VLAN_TAG);
        return VLAN_TAG;
    }
    return 0;
}

static void accept_message(struct live *live, struct channel *channel, uint32_t slot,
                           int64_t now_ns, int64_t realtime_offset)
{
    struct msghdr *header = &live->headers[slot].msg_hdr;
    uint32_t ifindex = (uint32_t)live->senders[slot].sll_ifindex;
    struct attachment *from = ifindex < channel->ifindices ? channel->by_ifindex[ifindex] : NULL;
    if (!from || header->msg_flags & MSG_TRUNC)
        return;
    uint8_t *bytes = live->vectors[slot].iov_base;
    uint32_t length = live->headers[slot].msg_len + restore_vlan_tag(header, &bytes);
    live->inbox[live->inbox_count] =
        (struct received){.from = from,
                          .stamp_ns = kernel_stamp(header, now_ns, realtime_offset),
                          .bytes = bytes,
                          .length = length,
                          .order = live->inbox_count};
    live->inbox_count++;
}

/* Fills the inbox from one channel; returns how many slots are used. */
static uint32_t receive_channel(struct live *live, struct channel *channel, uint32_t used)
{
    for (uint32_t i = used; i < RECEIVE_BATCH; i++) {
        live->vectors[i] = (struct iovec){live->buffers + (size_t)i * live->buffer_bytes + VLAN_TAG,
                                          live->buffer_bytes - VLAN_TAG};
        live->headers[i].msg_hdr = (struct msghdr){.msg_name = &live->senders[i],
                                                   .msg_namelen = sizeof live->senders[i],
                                                   .msg_iov = &live->vectors[i],
                                                   .msg_iovlen = 1,
                                                   .msg_control = live->controls[i],
                                                   .msg_controllen = sizeof live->controls[i]};
    }
    int count =
        recvmmsg(channel->fd, live->headers + used, RECEIVE_BATCH - used, MSG_DONTWAIT, NULL);
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t realtime_offset = clock_ns(CLOCK_REALTIME) - now_ns;
    for (int i = 0; i < count; i++)
        accept_message(live, channel, used + (uint32_t)i, now_ns, realtime_offset);
    return count > 0 ? used + (uint32_t)count : used;
}

static int by_stamp(const void *left, const void *right)
{
    const struct received *a = left, *b = right;
    if (a->stamp_ns != b->stamp_ns)
        return a->stamp_ns < b->stamp_ns ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void step_until(struct live *live, picoseconds until)
{
    struct clock *clock = &live->fabric->clock;
    picoseconds step = (picoseconds)((double)STEP_NS * PS_PER_NS / live->slowdown);
    while (clock->now + step < until) {
        clock_run_until(clock, clock->now + step);
        flush_all(live);
    }
    if (until > clock->now)
        clock_run_until(clock, until);
}

static void deliver_to_end(struct live *live, const struct received *message)
{
    const uint8_t *bytes = message->bytes;
    uint32_t length = message->length, index = message->from->end->index;
    picoseconds now = live->fabric->clock.now;
    if (message->from->end->framing == FRAMING_ETHERNET) {
        fabric_input(live->fabric, index, FRAME_ETHERNET, bytes, length, now);
        return;
    }
    if (length < CARRIER_BYTES)
        return;
    uint16_t ethertype = (uint16_t)(bytes[12] << 8 | bytes[13]);
    if (ethertype == ETHERTYPE_IB_PACKET || ethertype == ETHERTYPE_IB_LINK)
        fabric_input(live->fabric, index,
                     ethertype == ETHERTYPE_IB_PACKET ? FRAME_IB : FRAME_IB_LINK,
                     bytes + CARRIER_BYTES, length - CARRIER_BYTES, now);
}

static void deliver(struct live *live, const struct received *message)
{
    picoseconds at = emulated(live, message->stamp_ns);
    step_until(live, at);
    live->received++;
    if (message->from->end) {
        deliver_to_end(live, message);
        return;
    }
    struct transit_time time =
        switch_returned(message->from->sw, message->from->number, message->bytes, message->length,
                        live->fabric->clock.now);
    double to_wall = live->slowdown / PS_PER_NS;
    note_late(live, LATE_RETURNED, (int64_t)((double)time.late * to_wall), message->stamp_ns);
    histogram_add(&live->histograms[PLANE_KEPT], (int64_t)((double)time.kept * to_wall));
}

static void process_inbox(struct live *live)
{
    qsort(live->inbox, live->inbox_count, sizeof *live->inbox, by_stamp);
    for (uint32_t i = 0; i < live->inbox_count; i++)
        deliver(live, &live->inbox[i]);
    live->inbox_count = 0;
}

/* ---- the loop -------------------------------------------------------------------------- */

static int wait_for_work(struct live *live, struct epoll_event *events, int room)
{
    picoseconds deadline = clock_next_deadline(&live->fabric->clock);
    int64_t left_ns = NS_PER_S / 10;
    if (deadline != NEVER) {
        int64_t until = wall(live, deadline) - clock_ns(CLOCK_MONOTONIC);
        left_ns = until < left_ns ? until : left_ns;
    }
    if (left_ns < 0)
        left_ns = 0;
    struct timespec timeout = {left_ns / NS_PER_S, left_ns % NS_PER_S};
    int count = epoll_pwait2(live->epoll_fd, events, room, &timeout, NULL);
    return count < 0 && errno != EINTR ? -errno : count < 0 ? 0 : count;
}

static int turn(struct live *live)
{
    struct epoll_event events[64];
    int count = wait_for_work(live, events, 64);
    if (count < 0)
        return count;
    int outcome = LIVE_GOES_ON;
    uint32_t used = 0;
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == WAKE)
            outcome = LIVE_WOKEN;
        else if (used < RECEIVE_BATCH)
            used = receive_channel(live, live->channels[events[i].data.u32], used);
    }
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    process_inbox(live);
    step_until(live, emulated(live, now_ns));
    flush_all(live);
    return live->finished && *live->finished ? LIVE_FINISHED : outcome;
}

int live_run(struct live *live, int64_t t0_ns, int64_t until_ns)
{
    live->t0_ns = t0_ns;
    int outcome;
    do
        outcome = turn(live);
    while (outcome == LIVE_GOES_ON && clock_ns(CLOCK_MONOTONIC) < until_ns);
    return outcome == LIVE_GOES_ON ? LIVE_PAUSED : outcome;
}

/* ---- set-up ------------------------------------------------------------------------------ */

struct live *live_new(struct fabric *fabric, double slowdown, int wake_fd)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return NULL;
    live->fabric = fabric;
    live->slowdown = slowdown;
    live->buffer_bytes = VLAN_TAG + CARRIER_BYTES + fabric->pool.large.room;
    live->buffers = malloc((size_t)RECEIVE_BATCH * live->buffer_bytes);
    live->by_index = calloc(fabric->port_count, sizeof *live->by_index);
    live->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.u32 = WAKE};
    if (!live->buffers || !live->by_index || live->epoll_fd < 0 ||
        epoll_ctl(live->epoll_fd, EPOLL_CTL_ADD, wake_fd, &wake) < 0) {
        live_free(live);
        return NULL;
    }
    fabric->emit = emit;
    fabric->driver = live;
    return live;
}

void live_free(struct live *live)
{
    for (int i = 0; i < live->channel_count; i++) {
        free(live->channels[i]->by_ifindex);
        free(live->channels[i]);
    }
    if (live->by_index)
        for (uint32_t i = 0; i < live->fabric->port_count; i++)
            free(live->by_index[i]);
    free(live->by_index);
    free(live->buffers);
    if (live->epoll_fd >= 0)
        close(live->epoll_fd);
    free(live);
}

int live_add_channel(struct live *live, int fd)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel || live->channel_count == CHANNELS) {
        free(channel);
        return -1;
    }
    channel->fd = fd;
    struct epoll_event readable = {.events = EPOLLIN, .data.u32 = (uint32_t)live->channel_count};
    if (epoll_ctl(live->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0) {
        free(channel);
        return -1;
    }
    live->channels[live->channel_count] = channel;
    return live->channel_count++;
}

static bool grow_ifindices(struct channel *channel, uint32_t ifindex)
{
    if (ifindex < channel->ifindices)
        return true;
    struct attachment **grown =
        realloc(channel->by_ifindex, 2 * (ifindex + 1) * sizeof(struct attachment *));
    if (!grown)
        return false;
    memset(grown + channel->ifindices, 0, (2 * (ifindex + 1) - channel->ifindices) * sizeof *grown);
    channel->by_ifindex = grown;
    channel->ifindices = 2 * (ifindex + 1);
    return true;
}

static struct attachment *attach(struct live *live, int channel, int ifindex, uint32_t index)
{
    struct channel *on = live->channels[channel];
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment || !grow_ifindices(on, (uint32_t)ifindex)) {
        free(attachment);
        return NULL;
    }
    attachment->channel = on;
    attachment->address = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = ETH_ALEN};
    on->by_ifindex[ifindex] = attachment;
    live->by_index[index] = attachment;
    return attachment;
}

bool live_attach_end(struct live *live, int channel, int ifindex, uint32_t index)
{
    struct attachment *attachment = attach(live, channel, ifindex, index);
    if (attachment)
        attachment->end = live->fabric->ports[index];
    return attachment;
}

bool live_attach_plane(struct live *live, int channel, int ifindex, struct fabric_switch *sw,
                       uint32_t number)
{
    uint32_t index = switch_port(sw, number)->port.index;
    struct attachment *attachment = attach(live, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->sw = sw;
    attachment->number = number;
    sw->config.plane = PLANE_OUTER;
    sw->config.transit_timeout =
        (picoseconds)((double)TRANSIT_TIMEOUT_NS * PS_PER_NS / live->slowdown);
    sw->hand_over = hand_over;
    sw->outer = live;
    return true;
}

void live_set_depths(struct live *live, uint32_t *depths)
{
    struct fabric *fabric = live->fabric;
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        for (uint32_t number = 1; number <= fabric->switches[i]->config.ports; number++) {
            struct switch_port *own = switch_port(fabric->switches[i], number);
            own->depth = depths + (size_t)own->port.index * PRIORITIES;
        }
}

void live_set_finished(struct live *live, const bool *finished)
{
    live->finished = finished;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

void live_histogram(const struct live *live, int which, uint64_t *buckets)
{
    memcpy(buckets, live->histograms[which].count, sizeof live->histograms[which].count);
}

int64_t live_timeline(const struct live *live, int64_t *worst)
{
    memcpy(worst, live->timeline.worst, sizeof live->timeline.worst);
    return live->timeline.interval;
}

uint64_t live_send_failures(const struct live *live)
{
    return live->send_failures;
}

uint64_t live_frames_sent(const struct live *live)
{
    return live->sent;
}

uint64_t live_frames_received(const struct live *live)
{
    return live->received;
}
