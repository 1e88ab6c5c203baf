/* Frames between the two processes of a lab on the exact clock: sent with a stamp, and matched with
 * it when they come in. */
#define _GNU_SOURCE /* struct mmsghdr */

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/epoll.h>

#include "driver/exact_state.h"
#include "headers/ib_encap.h"
#include "headers/roce.h"

void exact_fail(struct exact_driver *driver, struct exact_failure failure)
{
    if (!driver->has_failed)
        driver->failure = failure;
    driver->has_failed = true;
}

/* Of all bytes: a payload that changed would make the results differ from the virtual clock's. */
static uint32_t digest_of(const uint8_t *bytes, uint32_t length)
{
    return libdeflate_crc32(0, bytes, length);
}

struct exact_head exact_head_of(const struct frame *frame)
{
    struct exact_head head = {
        .length = (uint8_t)(frame->stored < EXACT_HEAD ? frame->stored : EXACT_HEAD)};
    memcpy(head.bytes, frame->bytes, head.length);
    return head;
}

/* ---- sending --------------------------------------------------------------------- */

/* The message that the kernel refused first says which frame it is. */
static void fail_refused(struct exact_driver *driver, const struct channel *channel, int error)
{
    const struct msghdr *message = &channel->messages[channel->first_refused].msg_hdr;
    const struct iovec *part = &message->msg_iov[message->msg_iovlen - 1];
    const struct attachment *to = container_of(message->msg_name, struct attachment, address);
    struct frame frame = {.bytes = part->iov_base, .stored = (uint16_t)part->iov_len};
    exact_fail(driver, (struct exact_failure){.kind = EXACT_FRAME_REFUSED,
                                              .index = to->index,
                                              .length = (uint32_t)part->iov_len,
                                              .head = exact_head_of(&frame),
                                              .error = error});
}

static void flush(struct exact_driver *driver, struct channel *channel)
{
    if (!channel->count)
        return;
    if (channel_flush(channel))
        fail_refused(driver, channel, errno);
    channel->count = 0;
}

void exact_flush(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->channel_count; i++)
        flush(driver, driver->channels[i]);
    driver->copied = 0;
}

void exact_enqueue(struct exact_driver *driver, struct attachment *to, const struct frame *frame)
{
    if (!channel_queue(to->channel, &to->address, frame, (struct outgoing){0}))
        flush(driver, to->channel);
}

static void wait_for_room(struct exact_driver *driver, const struct attachment *to)
{
    int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    exact_flush(driver);
    while (ring_count(to->sends) >= to->room && !driver->has_failed) {
        exact_drain(driver);
        exchange_wait_for_room(&driver->exchange);
        if (exchange_other_ponders(&driver->exchange))
            since_ns = clock_ns(CLOCK_MONOTONIC);
        if (clock_ns(CLOCK_MONOTONIC) - since_ns > driver->patience.other_ns)
            exact_fail(driver, (struct exact_failure){.kind = EXACT_OTHER_SILENT});
    }
}

/* The line keeps the frame until it would arrive, and then frees it; a copy is sent. */
static struct frame copy_of(struct exact_driver *driver, const struct frame *frame)
{
    struct frame copy = *frame;
    if (driver->copied + frame->stored > EXACT_COPIES_BYTES)
        exact_flush(driver);
    copy.bytes = driver->copies + driver->copied;
    memcpy(copy.bytes, frame->bytes, frame->stored);
    driver->copied += frame->stored;
    return copy;
}

void exact_departed(void *owner, struct port *end, const struct frame *frame, picoseconds start)
{
    struct exact_driver *driver = owner;
    struct attachment *to = driver->by_index[end->index];
    picoseconds epoch = driver->exchange.epoch;
    if (!to->sends) {
        struct frame alone = copy_of(driver, frame);
        exact_enqueue(driver, to, &alone);
        return;
    }
    if (ring_count(to->sends) >= to->room)
        wait_for_room(driver, to);
    if (driver->has_failed)
        return;
    struct stamp stamp = {.start = start + epoch,
                          .tail_at = frame->tail_at + epoch,
                          .due_at = frame->due_at + epoch,
                          .id = frame->id,
                          .digest = digest_of(frame->bytes, frame->stored),
                          .length = frame->length,
                          .cuts = frame->cuts,
                          .kind = frame->kind,
                          .tc = frame->tc,
                          .corrupt = frame->corrupt,
                          .head = exact_head_of(frame)};
    struct frame copy = copy_of(driver, frame);
    ring_put(to->sends, &stamp);
    driver->counts.sent++;
    if (frame->due_at < driver->arrives)
        driver->arrives = frame->due_at;
    exact_enqueue(driver, to, &copy);
}

/* ---- receiving -------------------------------------------------------------------- */

/* Whether only the emulation sends such frames. */
static bool is_emulated(const struct attachment *from, const struct rx_frame *rx)
{
    enum { PROTOCOL_AT = 12, PAUSE = 0x8808, IPV4 = 0x0800, VLAN = 0x8100, UDP = 17 };
    const uint8_t *bytes = rx->bytes;
    uint32_t at = PROTOCOL_AT;
    if (from->end->framing != FRAMING_ETHERNET)
        return ib_encap_kind(bytes, rx->length) != FRAME_ETHERNET;
    if (rx->length < ETHERNET_MIN)
        return false;
    if ((bytes[at] << 8 | bytes[at + 1]) == VLAN)
        at += VLAN_TAG_BYTES;
    uint32_t type = (uint32_t)(bytes[at] << 8 | bytes[at + 1]), ip = at + 2;
    if (type == PAUSE)
        return true;
    uint32_t udp = ip + (bytes[ip] & 0x0F) * 4u;
    return type == IPV4 && bytes[ip + 9] == UDP && udp + 4 <= rx->length &&
           (bytes[udp + 2] << 8 | bytes[udp + 3]) == ROCE_UDP_PORT;
}

/* The stamp of the frame that comes in next; NULL: none is on the way. */
static const struct stamp *next_stamp(const struct attachment *from)
{
    return from->receives && from->taken < ring_count(from->receives)
               ? ring_at(from->receives, from->taken)
               : NULL;
}

static bool is_stamped(const struct stamp *stamp, const uint8_t *bytes, uint32_t length)
{
    return stamp->length == length && stamp->digest == digest_of(bytes, length);
}

/* Whether these are the bytes of a frame behind the next one. */
static bool is_later(const struct attachment *from, const uint8_t *bytes, uint32_t length)
{
    uint32_t count = ring_count(from->receives);
    for (uint32_t place = from->taken + 1; place < count; place++)
        if (is_stamped(ring_at(from->receives, place), bytes, length))
            return true;
    return false;
}

static void fail_frame(struct exact_driver *driver, enum exact_failure_kind kind,
                       const struct attachment *from)
{
    const struct stamp *stamp = next_stamp(from);
    struct exact_failure failure = {
        .kind = kind, .index = from->end->index, .number = from->received + 1};
    if (stamp) {
        failure.at_ps = stamp->start - driver->exchange.epoch;
        failure.length = stamp->length;
        failure.head = stamp->head;
    }
    exact_fail(driver, failure);
}

/* A frame of a program or of the kernel. */
static void take_foreign(struct exact_driver *driver, const struct rx_frame *rx,
                         const struct attachment *from)
{
    enum { WAITING = 1024 }; /* while emulated time stands */
    struct fabric *fabric = driver->fabric;
    driver->counts.foreign++;
    if (from->end->framing != FRAMING_ETHERNET ||
        rx->length > fabric_only_pool(fabric)->large.room || driver->foreign_waiting >= WAITING)
        return;
    struct frame *frame = frame_new(fabric_only_pool(fabric), FRAME_ETHERNET, rx->length);
    if (!frame)
        return;
    memcpy(frame->bytes, rx->bytes, rx->length);
    frame->out_port = (uint16_t)from->end->index;
    list_push(&driver->foreign, frame);
    driver->foreign_waiting++;
}

static void take_stamped(struct exact_driver *driver, struct attachment *from,
                         const struct stamp *stamp, const uint8_t *bytes)
{
    struct frame *frame = frame_new(fabric_only_pool(driver->fabric), stamp->kind, stamp->length);
    if (!frame) {
        fail_frame(driver, EXACT_POOL_EXHAUSTED, from);
        return;
    }
    memcpy(frame->bytes, bytes, stamp->length);
    frame->id = stamp->id;
    frame->tail_at = stamp->tail_at - driver->exchange.epoch;
    frame->due_at = stamp->due_at - driver->exchange.epoch;
    frame->tc = stamp->tc;
    frame->cuts = stamp->cuts;
    frame->corrupt = stamp->corrupt;
    port_on_the_way(from->end, frame);
}

static void take_from_cable(struct exact_driver *driver, struct attachment *from,
                            const struct rx_frame *rx)
{
    uint32_t encap = from->end->framing == FRAMING_ETHERNET ? 0 : IB_ENCAP_BYTES;
    const uint8_t *bytes = rx->bytes + encap;
    const struct stamp *stamp = next_stamp(from);
    if (stamp && rx->length >= encap && is_stamped(stamp, bytes, rx->length - encap)) {
        take_stamped(driver, from, stamp, bytes);
        from->received++;
        from->taken++;
        driver->received++;
    } else if (is_emulated(from, rx)) {
        if (from->receives) /* else of NICs that have ended */
            fail_frame(driver,
                       is_later(from, bytes, rx->length - encap) ? EXACT_FRAME_OVERTAKEN
                                                                 : EXACT_FRAME_CHANGED,
                       from);
    } else {
        take_foreign(driver, rx, from);
    }
}

/* The other process may send as many frames more as slots are released, and not before: it would
 * find the socket's ring full. */
static void release(struct exact_driver *driver, struct channel *channel, uint32_t count)
{
    channel_release(channel);
    for (uint32_t i = 0; i < count; i++) {
        struct attachment *from = driver->inbox[i].to;
        if (!from || !from->taken)
            continue;
        ring_pop(from->receives, from->taken);
        from->taken = 0;
    }
}

static void drain_channel(struct exact_driver *driver, struct channel *channel)
{
    uint32_t count;
    do {
        count = channel_receive(channel, driver->inbox, 0);
        for (uint32_t i = 0; i < count && !driver->has_failed; i++) {
            const struct rx_frame *rx = &driver->inbox[i];
            struct attachment *from = rx->to;
            if (!rx->bytes)
                continue;
            if (from->end)
                take_from_cable(driver, from, rx);
            else
                exact_take_from_datapath(driver, from, rx);
        }
        release(driver, channel, count);
    } while (count && !driver->has_failed);
}

/* Takes in all frames that are there. Channels of one cable alone are read only when a frame is
 * expected. */
void exact_drain(struct exact_driver *driver)
{
    uint64_t before = driver->received;
    if (driver->side == EXACT_SWITCHES)
        drain_channel(driver, driver->channels[0]);
    else
        for (uint32_t i = 0; i < driver->attached_cables; i++)
            if (next_stamp(driver->cables[i]))
                drain_channel(driver, driver->cables[i]->channel);
    if (driver->received != before && exact_has_joined(driver))
        exchange_received(&driver->exchange);
}

void exact_wait_for_frames(const struct exact_driver *driver)
{
    struct epoll_event events[EXACT_EVENTS];
    epoll_wait(driver->epoll_fd, events, EXACT_EVENTS, (int)(WAIT_NS / (NS_PER_S / 1000)));
}

static void fail_missing(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->attached_cables; i++)
        if (next_stamp(driver->cables[i])) {
            fail_frame(driver, EXACT_FRAME_LOST, driver->cables[i]);
            return;
        }
}

/* Takes in all frames that the other process has sent before the end of its window. */
void exact_receive_sent(struct exact_driver *driver, uint64_t sent)
{
    int64_t since_ns = 0;
    exact_drain(driver);
    while (driver->received < sent && !driver->has_failed) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns ? since_ns : now_ns;
        if (now_ns - since_ns > driver->patience.frame_ns)
            fail_missing(driver);
        exact_wait_for_frames(driver);
        exact_drain(driver);
    }
}
