#define _GNU_SOURCE /* struct mmsghdr */

#include "driver/exact_driver.h"

#include <errno.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/fabric.h"
#include "driver/channel.h"
#include "driver/exchange.h"
#include "driver/external_marker.h"
#include "driver/walltime.h"
#include "headers/ib_encap.h"
#include "headers/roce.h"
#include "nic/nic_api.h"
#include "switch/transit.h"

enum {
    EVENTS = 64,
    COPIES_BYTES = 1 << 20,
    /* The receive buffer of Open vSwitch's socket on a port, and what a frame takes of it at most:
     * its bytes, rounded up to a power of two, and the kernel's own structures. */
    DATAPATH_ROOM = 150000,
    DATAPATH_FRAME = 1024,
    DATAPATH_FRAMES = 512, /* of all ports */
    MARKED_BYTES = 128,    /* of a frame, for the marker: all headers */
    ROUNDS_BETWEEN_LOOKS = 64,
};

#define LOST_AFTER_NS (10 * NS_PER_S)
#define SILENT_AFTER_NS (60 * NS_PER_S)
#define WAIT_NS (NS_PER_S / 20)

/* A network interface. */
struct attachment {
    struct channel *channel;
    struct sockaddr_ll address;
    uint32_t index; /* of the port that the frames sent here come from */
    /* A cable to the other process. `end` stands in for the port there. */
    struct port *end;
    struct stamp_ring *sends, *receives;
    uint32_t room;
    uint64_t received; /* frames */
    /* Or a port of a switch with an external datapath. */
    struct fabric_switch *sw;
    uint32_t number;
    uint32_t in_datapath; /* room that its packets take there */
};

struct exact_driver {
    struct fabric *fabric;
    struct exchange exchange;
    picoseconds step, limit, stop, arrives;
    picoseconds checked;       /* the last end of a step; the workload had not ended then */
    struct workload *workload; /* NULL: it is in the other process */
    bool started, done;
    int epoll_fd, wake_fd;
    struct channel **channels;
    uint32_t channel_count, channel_room;
    struct attachment **by_index; /* by port index; of a cable: that of the end */
    struct attachment **cables;
    uint32_t cable_count, attached_cables;
    uint64_t received;
    uint32_t in_datapath;
    uint8_t *copies; /* of frames that are to be sent */
    uint32_t copied;
    struct frame_list foreign; /* to be delivered at the beginning of the next window */
    struct external_marker marker;
    uint32_t *marker_ifindex; /* by port index */
    struct exact_counts counts;
    bool has_failed;
    struct exact_failure failure;
    struct rx_frame inbox[RECEIVE_BATCH];
    struct receive_room receive_room;
};

static void fail(struct exact_driver *driver, struct exact_failure failure)
{
    if (!driver->has_failed)
        driver->failure = failure;
    driver->has_failed = true;
}

static uint64_t digest_of(const uint8_t *bytes, uint32_t length)
{
    enum { HEAD = 192 };
    uint64_t hash = length, word;
    uint32_t head = length < HEAD ? length : HEAD;
    for (uint32_t at = 0; at + sizeof word <= head; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    if (length >= sizeof word) {
        memcpy(&word, bytes + length - sizeof word, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return hash ^ hash >> 32;
}

/* ---- sending --------------------------------------------------------------------- */

static void flush(struct exact_driver *driver, struct channel *channel)
{
    if (!channel->count)
        return;
    if (channel_flush(channel))
        fail(driver, (struct exact_failure){.kind = EXACT_FRAME_REFUSED, .error = errno});
    channel->count = 0;
}

static void flush_all(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->channel_count; i++)
        flush(driver, driver->channels[i]);
    driver->copied = 0;
}

static void enqueue(struct exact_driver *driver, struct attachment *to, const struct frame *frame)
{
    if (!channel_queue(to->channel, &to->address, frame, (struct outgoing){0}))
        flush(driver, to->channel);
}

static void drain(struct exact_driver *driver);

static void wait_for_room(struct exact_driver *driver, const struct attachment *to)
{
    int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    flush_all(driver);
    while (ring_count(to->sends) >= to->room && !driver->has_failed) {
        drain(driver);
        exchange_wait_for_room(&driver->exchange);
        if (clock_ns(CLOCK_MONOTONIC) - since_ns > SILENT_AFTER_NS)
            fail(driver, (struct exact_failure){.kind = EXACT_OTHER_SILENT});
    }
}

/* The line keeps the frame until it would arrive, and then frees it; a copy is sent. */
static struct frame copy_of(struct exact_driver *driver, const struct frame *frame)
{
    struct frame copy = *frame;
    if (driver->copied + frame->stored > COPIES_BYTES)
        flush_all(driver);
    copy.bytes = driver->copies + driver->copied;
    memcpy(copy.bytes, frame->bytes, frame->stored);
    driver->copied += frame->stored;
    return copy;
}

static void departed(void *owner, struct port *end, const struct frame *frame, picoseconds start)
{
    struct exact_driver *driver = owner;
    struct attachment *to = driver->by_index[end->index];
    if (ring_count(to->sends) >= to->room)
        wait_for_room(driver, to);
    if (driver->has_failed)
        return;
    struct stamp stamp = {.start = start,
                          .tail_at = frame->tail_at,
                          .due_at = frame->due_at,
                          .id = frame->id,
                          .digest = digest_of(frame->bytes, frame->stored),
                          .length = frame->length,
                          .kind = frame->kind,
                          .tc = frame->tc,
                          .corrupt = frame->corrupt};
    struct frame copy = copy_of(driver, frame);
    ring_put(to->sends, &stamp);
    driver->counts.sent++;
    if (frame->due_at < driver->arrives)
        driver->arrives = frame->due_at;
    enqueue(driver, to, &copy);
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

static bool is_stamped(const struct stamp *stamp, const uint8_t *bytes, uint32_t length)
{
    return stamp->length == length && stamp->digest == digest_of(bytes, length);
}

static void fail_frame(struct exact_driver *driver, enum exact_failure_kind kind,
                       const struct attachment *from)
{
    const struct stamp *stamp = ring_count(from->receives) ? ring_at(from->receives, 0) : NULL;
    struct exact_failure failure = {
        .kind = kind, .index = from->end->index, .number = from->received + 1};
    if (stamp) {
        failure.at_ps = stamp->start;
        failure.length = stamp->length;
    }
    fail(driver, failure);
}

/* A frame of a program or of the kernel. */
static void take_foreign(struct exact_driver *driver, const struct rx_frame *rx,
                         const struct attachment *from)
{
    struct fabric *fabric = driver->fabric;
    driver->counts.foreign++;
    if (from->end->framing != FRAMING_ETHERNET || rx->length > fabric_only_pool(fabric)->large.room)
        return;
    struct frame *frame = frame_new(fabric_only_pool(fabric), FRAME_ETHERNET, rx->length);
    if (!frame)
        return;
    memcpy(frame->bytes, rx->bytes, rx->length);
    frame->out_port = (uint16_t)from->end->index;
    list_push(&driver->foreign, frame);
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
    frame->tail_at = stamp->tail_at;
    frame->due_at = stamp->due_at;
    frame->tc = stamp->tc;
    frame->corrupt = stamp->corrupt;
    port_on_the_way(from->end, frame);
}

static void take_from_cable(struct exact_driver *driver, struct attachment *from,
                            const struct rx_frame *rx)
{
    uint32_t encap = from->end->framing == FRAMING_ETHERNET ? 0 : IB_ENCAP_BYTES;
    const uint8_t *bytes = rx->bytes + encap;
    const struct stamp *stamp = ring_count(from->receives) ? ring_at(from->receives, 0) : NULL;
    if (stamp && rx->length >= encap && is_stamped(stamp, bytes, rx->length - encap)) {
        take_stamped(driver, from, stamp, bytes);
        from->received++;
        driver->received++;
        ring_pop(from->receives);
    } else if (is_emulated(from, rx)) {
        fail_frame(driver, EXACT_FRAME_CHANGED, from);
    } else {
        take_foreign(driver, rx, from);
    }
}

/* The part of the socket's receive buffer that a packet takes in the datapath, at most. */
static uint32_t room_in_datapath(uint32_t length)
{
    return 2 * length + DATAPATH_FRAME;
}

static void take_from_datapath(struct exact_driver *driver, const struct attachment *from,
                               const struct rx_frame *rx)
{
    const struct frame *frame = transit_resolved(from->sw, from->number, rx->bytes, rx->length);
    if (!frame) {
        driver->counts.foreign++;
        return;
    }
    uint32_t in_index = switch_port(from->sw, frame->charge.in_port)->port.index;
    driver->by_index[in_index]->in_datapath -= room_in_datapath(frame->length);
    driver->in_datapath--;
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
                take_from_datapath(driver, from, rx);
        }
        channel_release(channel);
    } while (count && !driver->has_failed);
}

/* Takes in all frames that are there. Channels of one cable alone are read only when a frame is
 * expected. */
static void drain(struct exact_driver *driver)
{
    uint64_t before = driver->received;
    if (driver->exchange.side == EXACT_SWITCHES)
        drain_channel(driver, driver->channels[0]);
    else
        for (uint32_t i = 0; i < driver->attached_cables; i++)
            if (ring_count(driver->cables[i]->receives))
                drain_channel(driver, driver->cables[i]->channel);
    if (driver->received != before)
        exchange_received(&driver->exchange);
}

static void wait_for_frames(const struct exact_driver *driver)
{
    struct epoll_event events[EVENTS];
    epoll_wait(driver->epoll_fd, events, EVENTS, (int)(WAIT_NS / (NS_PER_S / 1000)));
}

static void fail_missing(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->attached_cables; i++)
        if (ring_count(driver->cables[i]->receives)) {
            fail_frame(driver, EXACT_FRAME_LOST, driver->cables[i]);
            return;
        }
}

/* Takes in all frames that the other process has sent before the end of its window. */
static void receive_sent(struct exact_driver *driver, uint64_t sent)
{
    int64_t since_ns = 0;
    drain(driver);
    while (driver->received < sent && !driver->has_failed) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns ? since_ns : now_ns;
        if (now_ns - since_ns > LOST_AFTER_NS)
            fail_missing(driver);
        wait_for_frames(driver);
        drain(driver);
    }
}

/* ---- the external datapath ---------------------------------------------------------- */

static void await_room(struct exact_driver *driver, const struct attachment *to, uint32_t room)
{
    int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    flush_all(driver);
    drain(driver);
    while ((to->in_datapath + room > DATAPATH_ROOM || driver->in_datapath >= DATAPATH_FRAMES) &&
           !driver->has_failed) {
        wait_for_frames(driver);
        drain(driver);
        if (clock_ns(CLOCK_MONOTONIC) - since_ns > LOST_AFTER_NS)
            fail(driver,
                 (struct exact_failure){.kind = EXACT_LOST_IN_DATAPATH, .index = to->index});
    }
}

static void hand_over(void *datapath, struct switch_port *in, const struct frame *frame,
                      picoseconds now)
{
    (void)now;
    struct exact_driver *driver = datapath;
    struct attachment *to = driver->by_index[in->port.index];
    uint32_t room = room_in_datapath(frame->length);
    if (to->in_datapath + room > DATAPATH_ROOM || driver->in_datapath >= DATAPATH_FRAMES)
        await_room(driver, to, room);
    to->in_datapath += room;
    driver->in_datapath++;
    driver->counts.datapath++;
    enqueue(driver, to, frame);
}

static void await(void *datapath, struct fabric_switch *sw, const struct frame *frame)
{
    struct exact_driver *driver = datapath;
    int64_t since_ns = 0;
    if (driver->has_failed)
        return;
    flush_all(driver);
    drain(driver);
    while (!frame->out_port && !driver->has_failed) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns ? since_ns : now_ns;
        if (now_ns - since_ns > LOST_AFTER_NS)
            fail(driver, (struct exact_failure){
                             .kind = EXACT_LOST_IN_DATAPATH,
                             .index = switch_port(sw, frame->charge.in_port)->port.index,
                             .at_ps = frame->due_at - sw->config.latency_ps,
                             .length = frame->length,
                         });
        wait_for_frames(driver);
        drain(driver);
    }
}

/* ---- the marker ------------------------------------------------------------------------ */

/* The program reads the priority from the transit tag, which is gone by then (transit.h). */
static bool mark(void *datapath, const struct switch_port *out, uint8_t queue, struct frame *frame)
{
    enum { MAC_BYTES = 6, IPV4_BYTES = 20 };
    struct exact_driver *driver = datapath;
    uint32_t index = out->port.index;
    uint8_t head[MARKED_BYTES], *header = frame->bytes + frame->ip;
    uint32_t length = frame->stored < MARKED_BYTES ? frame->stored : MARKED_BYTES;
    memcpy(head, frame->bytes, length);
    head[MAC_BYTES + 1] = (uint8_t)(frame->tc << 4);
    driver->marker.depths[(size_t)index * PRIORITIES + queue] = (uint32_t)out->queue[queue].bytes;
    driver->counts.marked++;
    if (!external_marker_run(&driver->marker, driver->marker_ifindex[index], head, length)) {
        fail(driver,
             (struct exact_failure){.kind = EXACT_NO_MARKER, .index = index, .error = errno});
        return false;
    }
    memcpy(header, head + frame->ip, IPV4_BYTES);
    return ipv4_ecn(header) == ECN_CE;
}

/* ---- windows ----------------------------------------------------------------------------- */

static picoseconds earlier(picoseconds one, picoseconds other)
{
    return one < other ? one : other;
}

static picoseconds after(picoseconds time, picoseconds span)
{
    return time == NEVER ? NEVER : time + span;
}

static picoseconds own_lookahead(const struct exact_driver *driver)
{
    picoseconds least = NEVER;
    for (uint32_t i = 0; i < driver->attached_cables; i++) {
        const struct port *near = driver->cables[i]->end->line.far;
        while (near->outside) /* faults of the cable */
            near = near->line.far;
        least = earlier(least, port_lookahead(near));
    }
    return least;
}

/* The end of the step that the NICs are in. There they check whether the workload has ended. */
static picoseconds step_end(const struct exact_driver *driver, const struct window *nics)
{
    return earlier(nics->checked + driver->step, driver->limit);
}

static void publish(struct exact_driver *driver)
{
    struct clock *clock = fabric_only_clock(driver->fabric);
    flush_all(driver);
    picoseconds next = clock_next_deadline_besides(clock, &driver->fabric->parts[0].sampler.due);
    struct window window = {.next = driver->foreign.first ? clock->now : next,
                            .arrives = driver->arrives,
                            .stop = driver->stop,
                            .checked = driver->checked,
                            .sent = driver->counts.sent,
                            .done = driver->done};
    driver->arrives = NEVER;
    exchange_publish(&driver->exchange, &window);
}

static void deliver_foreign(struct exact_driver *driver)
{
    struct fabric *fabric = driver->fabric;
    while (driver->foreign.first) {
        struct frame *frame = list_pop(&driver->foreign);
        struct port *end = fabric->ports[frame->out_port];
        frame->out_port = 0;
        frame->tail_at = fabric_now(fabric);
        port_deliver(end->line.far, frame, fabric_now(fabric));
    }
}

static void check_workload(struct exact_driver *driver, picoseconds now)
{
    if (workload_is_finished(driver->workload, now))
        driver->stop = now;
    driver->checked = now;
}

static void run_window(struct exact_driver *driver)
{
    struct exchange *exchange = &driver->exchange;
    struct clock *clock = fabric_only_clock(driver->fabric);
    struct window own = exchange_own(exchange), other = exchange_other(exchange);
    picoseconds out = exchange->own->lookahead, in = exchange->other->lookahead;
    picoseconds mine = earlier(own.next, other.arrives);
    picoseconds theirs = earlier(other.next, own.arrives);
    picoseconds bound = after(earlier(theirs, after(mine, out)), in);
    picoseconds end = step_end(driver, exchange->side == EXACT_NICS ? &own : &other);
    end = earlier(end, earlier(own.stop, other.stop));
    picoseconds until = earlier(bound == NEVER ? NEVER : bound - 1, end);
    driver->counts.windows++;
    deliver_foreign(driver);
    if (until > clock->now)
        fabric_run(driver->fabric, until);
    if (driver->workload && clock->now == end && end > driver->checked)
        check_workload(driver, end);
    driver->done = clock->now >= earlier(driver->limit, earlier(driver->stop, other.stop));
}

/* ---- the loop ------------------------------------------------------------------------------ */

static bool is_woken(const struct exact_driver *driver)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(driver->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < count; i++)
        if (events[i].data.fd == driver->wake_fd)
            return true;
    return false;
}

/* Waits for the end of the other's window. False: EXACT_WOKEN or a failure. */
static bool wait_for_other(struct exact_driver *driver)
{
    int64_t since_ns = 0;
    while (!exchange_wait(&driver->exchange, WAIT_NS)) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns ? since_ns : now_ns;
        drain(driver);
        if (now_ns - since_ns > SILENT_AFTER_NS)
            fail(driver, (struct exact_failure){.kind = EXACT_OTHER_SILENT});
        if (driver->has_failed || is_woken(driver))
            return false;
    }
    return true;
}

static void begin(struct exact_driver *driver)
{
    driver->exchange.own->lookahead = own_lookahead(driver);
    if (driver->workload)
        check_workload(driver, fabric_now(driver->fabric));
    driver->started = true;
    publish(driver);
}

enum exact_outcome exact_run(struct exact_driver *driver, int64_t until_ns)
{
    if (!driver->started)
        begin(driver);
    for (uint32_t rounds = 1;; rounds++) {
        if (!wait_for_other(driver))
            return driver->has_failed ? EXACT_FAILED : EXACT_WOKEN;
        struct window own = exchange_own(&driver->exchange);
        struct window other = exchange_other(&driver->exchange);
        receive_sent(driver, other.sent);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (own.done && other.done)
            return EXACT_FINISHED;
        run_window(driver);
        publish(driver);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (fabric_captures_want_out(driver->fabric))
            return EXACT_PAUSED;
        if (rounds % ROUNDS_BETWEEN_LOOKS == 0 && clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return EXACT_PAUSED;
    }
}

/* ---- set-up ---------------------------------------------------------------------------------- */

size_t exact_memory_bytes(uint32_t cables)
{
    return exchange_bytes(cables);
}

static bool watch(const struct exact_driver *driver, int fd)
{
    struct epoll_event readable = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

struct exact_driver *exact_new(struct fabric *fabric, enum exact_side side, int memory_fd,
                               uint32_t cables, int64_t step_ps, int64_t limit_ps, int wake_fd)
{
    struct exact_driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return NULL;
    driver->fabric = fabric;
    driver->step = step_ps;
    driver->limit = limit_ps;
    driver->stop = driver->arrives = NEVER;
    driver->wake_fd = wake_fd;
    driver->cable_count = cables;
    driver->marker.program_fd = -1;
    driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    driver->channels = calloc(cables + 1, sizeof *driver->channels);
    driver->channel_room = cables + 1;
    driver->cables = calloc(cables + 1, sizeof *driver->cables);
    driver->by_index = calloc(fabric->port_count, sizeof *driver->by_index);
    driver->copies = malloc(COPIES_BYTES);
    if (driver->epoll_fd < 0 || !driver->channels || !driver->cables || !driver->by_index ||
        !driver->copies || !exchange_open(&driver->exchange, memory_fd, cables, side) ||
        !receive_room_init(&driver->receive_room,
                           fabric_only_pool(fabric)->large.room + IB_ENCAP_BYTES) ||
        !watch(driver, wake_fd)) {
        exact_free(driver);
        return NULL;
    }
    fabric->departed = departed;
    fabric->driver = driver;
    return driver;
}

void exact_free(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->channel_count; i++)
        channel_free(driver->channels[i]);
    for (uint32_t i = 0; driver->by_index && i < driver->fabric->port_count; i++)
        free(driver->by_index[i]);
    exchange_close(&driver->exchange);
    receive_room_free(&driver->receive_room);
    if (driver->epoll_fd >= 0)
        close(driver->epoll_fd);
    free(driver->marker_ifindex);
    free(driver->copies);
    free(driver->by_index);
    free(driver->cables);
    free(driver->channels);
    free(driver);
}

int exact_add_channel(struct exact_driver *driver, int fd, uint32_t ring_frames)
{
    if (driver->channel_count == driver->channel_room)
        return -1;
    struct channel *channel =
        channel_new(fd, &driver->receive_room,
                    fabric_only_pool(driver->fabric)->large.room + IB_ENCAP_BYTES, ring_frames);
    if (!channel)
        return -1;
    if (!channel->ring.memory || !watch(driver, fd)) {
        channel_free(channel);
        return -1;
    }
    driver->channels[driver->channel_count] = channel;
    return (int)driver->channel_count++;
}

static struct attachment *attach(struct exact_driver *driver, int channel, int ifindex,
                                 uint32_t index)
{
    struct channel *on = driver->channels[channel];
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment || !channel_attach(on, (uint32_t)ifindex, attachment)) {
        free(attachment);
        return NULL;
    }
    attachment->channel = on;
    attachment->index = index;
    attachment->address = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = ETH_ALEN};
    driver->by_index[index] = attachment;
    return attachment;
}

bool exact_attach_end(struct exact_driver *driver, int channel, int ifindex, uint32_t index,
                      uint32_t cable, uint32_t room)
{
    struct attachment *attachment = attach(driver, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->end = driver->fabric->ports[index];
    attachment->sends = exchange_sends(&driver->exchange, cable);
    attachment->receives = exchange_receives(&driver->exchange, cable);
    attachment->room = room < STAMPS ? room : STAMPS;
    driver->cables[driver->attached_cables++] = attachment;
    return true;
}

/* Whether a frame's latency in a switch depends on its egress port (pipeline_earliest). */
static bool has_several_rates(const struct fabric_switch *sw)
{
    for (uint32_t number = 2; number <= sw->config.ports; number++)
        if (sw->ports[number - 1].port.line.rate_bps != sw->ports[0].port.line.rate_bps)
            return true;
    return false;
}

bool exact_attach_datapath(struct exact_driver *driver, int channel, int ifindex,
                           struct fabric_switch *sw, uint32_t number)
{
    uint32_t index = switch_port(sw, number)->port.index;
    struct attachment *attachment = attach(driver, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->sw = sw;
    attachment->number = number;
    sw->datapath = DATAPATH_EXTERNAL;
    sw->awaits_each = sw->config.cut_through && has_several_rates(sw);
    sw->hand_over = hand_over;
    sw->await = await;
    sw->external_datapath = driver;
    return true;
}

void exact_set_marker(struct exact_driver *driver, int program_fd, uint32_t *depths, void *curves,
                      const uint32_t *indices, const uint32_t *ifindices, uint32_t ports)
{
    struct wred_curves *of_port = curves;
    struct fabric *fabric = driver->fabric;
    driver->marker = (struct external_marker){program_fd, depths};
    driver->marker_ifindex = calloc(fabric->port_count, sizeof *driver->marker_ifindex);
    for (uint32_t i = 0; i < ports && driver->marker_ifindex; i++) {
        struct switch_port *own = switch_port_of(fabric->ports[indices[i]]);
        driver->marker_ifindex[indices[i]] = ifindices[i];
        own->external_wred = of_port[indices[i]].wred;
        switch_of(&own->port)->mark = mark;
        switch_of(&own->port)->external_datapath = driver;
    }
}

void exact_set_workload(struct exact_driver *driver, struct workload *workload)
{
    driver->workload = workload;
}

struct exact_failure exact_failed(const struct exact_driver *driver)
{
    return driver->failure;
}

struct exact_counts exact_counted(const struct exact_driver *driver)
{
    return driver->counts;
}
