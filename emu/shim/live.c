#define _GNU_SOURCE /* epoll_pwait2 */

#include "live.h"

#include <errno.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "carrier.h"
#include "channel.h"
#include "fabric.h"
#include "ledger.h"
#include "transit.h"
#include "tun.h"
#include "walltime.h"

enum {
    CHANNELS = 1100,
    EVENTS = 64,
    WAKE = CHANNELS,
    TUNS, /* from here on */
};

/* A packet must be flushed before it can be given up as lost on the other side. */
#define STEP_NS INT64_C(20000000)
#define TRANSIT_TIMEOUT_NS INT64_C(200000000)
#define QUEUED_TIMEOUT_NS INT64_C(100000000000) /* where queues stand in the outer plane */
#define LONGEST_WAIT_NS (NS_PER_S / 10)
#define ROUND_NS (NS_PER_S / 50) /* in which every channel is asked once what it lost */

enum { LATE_SENT, LATE_TAKEN_IN, LATE_RETURNED, PLANE_KEPT, HISTOGRAMS };

struct attachment {
    struct channel *channel;
    struct port *end;         /* a cable end, or NULL: */
    struct fabric_switch *sw; /* a switch port's way to the forwarding plane */
    uint32_t number;
    struct sockaddr_ll address;
    int64_t last_stamp_ns; /* of what has come in by it */
};

struct live {
    struct fabric *fabric;
    double slowdown;
    bool queues_outside;
    int64_t t0_ns;
    int epoll_fd;
    const bool *finished;
    struct channel *channels[CHANNELS];
    int channel_count;
    struct tun tuns[CHANNELS];
    uint32_t tun_count;
    struct attachment **by_index; /* by port index */
    struct histogram histograms[HISTOGRAMS];
    struct timeline timeline;
    uint64_t sent, received, lost[LOSSES], dropped;
    int64_t next_count_ns; /* when the next channel is asked what it lost */
    int next_counted;
    struct arrival inbox[RECEIVE_BATCH];
    uint32_t inbox_count;
    struct receive_room room;
};

/* ---- two clocks ---------------------------------------------------------------- */

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
    note_worst(&timeline_at(&live->timeline, now_ns - live->t0_ns)->late, late_ns);
}

static void note_lost(struct live *live, enum loss how, uint32_t frames, int64_t now_ns)
{
    if (!frames)
        return;
    live->lost[how] += frames;
    timeline_at(&live->timeline, now_ns - live->t0_ns)->lost[how] += frames;
}

/* What the switches dropped since they were last asked. */
static void note_dropped(struct live *live, int64_t now_ns)
{
    uint64_t dropped = live->fabric->lossless_dropped;
    if (dropped == live->dropped)
        return;
    timeline_at(&live->timeline, now_ns - live->t0_ns)->dropped +=
        (int64_t)(dropped - live->dropped);
    live->dropped = dropped;
}

/* ---- sending --------------------------------------------------------------------- */

static void flush(struct live *live, struct channel *channel)
{
    uint32_t refused = channel_flush(channel);
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    note_lost(live, LOST_ON_LEAVING, refused, now_ns);
    for (uint32_t i = 0; i < channel->count; i++) {
        const struct outgoing *sent = &channel->outgoing[i];
        if (!sent->owned)
            continue;
        note_late(live, LATE_SENT, now_ns - wall(live, sent->due), now_ns);
        frame_free(&live->fabric->pool, sent->owned);
    }
    live->sent += channel->count;
    channel->count = 0;
}

static void flush_all(struct live *live)
{
    for (int i = 0; i < live->channel_count; i++)
        if (live->channels[i]->count)
            flush(live, live->channels[i]);
    for (uint32_t i = 0; i < live->tun_count; i++)
        tun_write(&live->tuns[i], live->fabric->clock.now);
}

static void enqueue(struct live *live, struct attachment *to, const struct frame *frame,
                    struct outgoing outgoing)
{
    if (!channel_queue(to->channel, &to->address, frame, outgoing))
        flush(live, to->channel);
}

static void emit(void *driver, struct port *end, struct frame *frame, picoseconds now)
{
    struct live *live = driver;
    struct attachment *to = live->by_index[end->index];
    if (to)
        enqueue(live, to, frame, (struct outgoing){frame, now});
    else
        frame_free(&live->fabric->pool, frame);
}

/* The frame stays the switch's, in transit. */
static void hand_over(void *outer, struct switch_port *in, const struct frame *frame,
                      picoseconds now)
{
    struct live *live = outer;
    enqueue(live, live->by_index[in->port.index], frame, (struct outgoing){NULL, now});
}

static void lost_outside(void *outer, picoseconds since)
{
    struct live *live = outer;
    note_lost(live, LOST_IN_PLANE, 1, wall(live, since));
}

/* ---- receiving -------------------------------------------------------------------- */

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

static void deliver_to_end(struct live *live, struct port *end, const uint8_t *bytes,
                           uint32_t length)
{
    picoseconds now = live->fabric->clock.now;
    uint8_t kind = carried_kind(bytes, length);
    if (end->framing == FRAMING_ETHERNET)
        fabric_input(live->fabric, end->index, FRAME_ETHERNET, bytes, length, now);
    else if (kind != FRAME_ETHERNET)
        fabric_input(live->fabric, end->index, kind, bytes + CARRIER_BYTES, length - CARRIER_BYTES,
                     now);
}

static void deliver_to_switch(struct live *live, const struct attachment *to,
                              const struct arrival *arrival)
{
    struct transit_time time = transit_returned(to->sw, to->number, arrival->bytes, arrival->length,
                                                live->fabric->clock.now);
    double to_wall = live->slowdown / PS_PER_NS;
    if (!live->queues_outside)
        note_late(live, LATE_RETURNED, (int64_t)((double)time.late * to_wall), arrival->stamp_ns);
    int64_t kept_ns = (int64_t)((double)time.kept * to_wall);
    histogram_add(&live->histograms[PLANE_KEPT], kept_ns);
    note_worst(&timeline_at(&live->timeline, arrival->stamp_ns - live->t0_ns)->kept, kept_ns);
}

/* The kernel stamps a frame before it hands it over, and the clock goes on meanwhile. */
static void note_arrival(struct live *live, struct attachment *to, const struct arrival *arrival)
{
    live->received++;
    if (arrival->stamp_ns < to->last_stamp_ns)
        note_lost(live, LOST_ITS_PLACE, 1, arrival->stamp_ns);
    else
        to->last_stamp_ns = arrival->stamp_ns;
    if (!to->end)
        return;
    picoseconds now = live->fabric->clock.now;
    picoseconds taken_in = now + line_backlog(&to->end->line, now);
    note_late(live, LATE_TAKEN_IN, wall(live, taken_in) - arrival->stamp_ns, arrival->stamp_ns);
}

static void deliver(struct live *live, const struct arrival *arrival)
{
    struct attachment *to = arrival->to;
    step_until(live, emulated(live, arrival->stamp_ns));
    note_arrival(live, to, arrival);
    if (to->end)
        deliver_to_end(live, to->end, arrival->bytes, arrival->length);
    else
        deliver_to_switch(live, to, arrival);
}

/* Several channels' frames become one sequence. One channel's are in order already but
 * for those that two processors brought at a time, so each has hardly a way to go. */
static void sort_inbox(struct live *live)
{
    struct arrival *inbox = live->inbox;
    for (uint32_t i = 1; i < live->inbox_count; i++) {
        struct arrival moved = inbox[i];
        uint32_t to = i;
        for (; to > 0 && inbox[to - 1].stamp_ns > moved.stamp_ns; to--)
            inbox[to] = inbox[to - 1];
        inbox[to] = moved;
    }
}

static void process_inbox(struct live *live)
{
    sort_inbox(live);
    for (uint32_t i = 0; i < live->inbox_count; i++)
        if (live->inbox[i].bytes)
            deliver(live, &live->inbox[i]);
    live->inbox_count = 0;
    for (int i = 0; i < live->channel_count; i++)
        channel_release(live->channels[i]);
}

static void read_tuns(struct live *live)
{
    for (uint32_t i = 0; i < live->tun_count; i++)
        tun_read(&live->tuns[i], live->fabric->clock.now);
}

/* ---- what was lost on arrival --------------------------------------------------------- */

static void count_drops(struct live *live, struct channel *channel, int64_t now_ns)
{
    note_lost(live, LOST_ON_ARRIVAL, channel_drops(channel), now_ns);
}

/* One channel at a time: there may be hundreds, and frames do not wait for that. */
static void count_drops_in_turn(struct live *live, int64_t now_ns)
{
    if (now_ns < live->next_count_ns || !live->channel_count)
        return;
    live->next_count_ns = now_ns + ROUND_NS / live->channel_count;
    live->next_counted = (live->next_counted + 1) % live->channel_count;
    count_drops(live, live->channels[live->next_counted], now_ns);
}

/* ---- the loop -------------------------------------------------------------------------- */

static int wait_for_work(struct live *live, struct epoll_event *events, int room)
{
    picoseconds deadline = clock_next_deadline(&live->fabric->clock);
    int64_t left_ns = LONGEST_WAIT_NS;
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
    struct epoll_event events[EVENTS];
    int count = wait_for_work(live, events, EVENTS);
    if (count < 0)
        return count;
    int outcome = LIVE_GOES_ON;
    for (int i = 0; i < count; i++) {
        uint32_t source = events[i].data.u32;
        if (source == WAKE)
            outcome = LIVE_WOKEN;
        else if (source >= TUNS)
            live->tuns[source - TUNS].readable = true;
        else if (live->inbox_count < RECEIVE_BATCH)
            live->inbox_count =
                channel_receive(live->channels[source], live->inbox, live->inbox_count);
    }
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    process_inbox(live);
    step_until(live, emulated(live, now_ns));
    read_tuns(live);
    note_dropped(live, now_ns);
    flush_all(live);
    count_drops_in_turn(live, now_ns);
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

/* The largest frame that comes from outside, less its VLAN tag. */
static uint32_t largest_frame(const struct fabric *fabric)
{
    return CARRIER_BYTES + fabric->pool.large.room;
}

struct live *live_new(struct fabric *fabric, double slowdown, int wake_fd)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return NULL;
    live->fabric = fabric;
    live->slowdown = slowdown;
    live->by_index = calloc(fabric->port_count, sizeof *live->by_index);
    live->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.u32 = WAKE};
    if (!receive_room_init(&live->room, largest_frame(fabric)) || !live->by_index ||
        live->epoll_fd < 0 || epoll_ctl(live->epoll_fd, EPOLL_CTL_ADD, wake_fd, &wake) < 0) {
        live_free(live);
        return NULL;
    }
    fabric->emit = emit;
    fabric->driver = live;
    return live;
}

void live_free(struct live *live)
{
    for (int i = 0; i < live->channel_count; i++)
        channel_free(live->channels[i]);
    if (live->by_index)
        for (uint32_t i = 0; i < live->fabric->port_count; i++)
            free(live->by_index[i]);
    free(live->by_index);
    receive_room_free(&live->room);
    if (live->epoll_fd >= 0)
        close(live->epoll_fd);
    free(live);
}

int live_add_channel(struct live *live, int fd, uint32_t ring_frames)
{
    if (live->channel_count == CHANNELS)
        return -1;
    struct channel *channel =
        channel_new(fd, &live->room, largest_frame(live->fabric), ring_frames);
    if (!channel)
        return -1;
    struct epoll_event readable = {.events = EPOLLIN, .data.u32 = (uint32_t)live->channel_count};
    if (epoll_ctl(live->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0) {
        channel_free(channel);
        return -1;
    }
    live->channels[live->channel_count] = channel;
    return live->channel_count++;
}

bool live_add_tun(struct live *live, int fd, struct ipoib *ipoib)
{
    /* Told once that packets have come: they may have to wait for room, and nobody spins. */
    struct epoll_event readable = {.events = EPOLLIN | EPOLLET, .data.u32 = TUNS + live->tun_count};
    if (live->tun_count == CHANNELS || epoll_ctl(live->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0)
        return false;
    live->tuns[live->tun_count++] = (struct tun){.fd = fd, .readable = true, .ipoib = ipoib};
    return true;
}

static struct attachment *attach(struct live *live, int channel, int ifindex, uint32_t index)
{
    struct channel *on = live->channels[channel];
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment || !channel_attach(on, (uint32_t)ifindex, attachment)) {
        free(attachment);
        return NULL;
    }
    attachment->channel = on;
    attachment->address = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = ETH_ALEN};
    live->by_index[index] = attachment;
    return attachment;
}

bool live_attach_end(struct live *live, int channel, int ifindex, uint32_t index, bool paced)
{
    struct attachment *attachment = attach(live, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->end = live->fabric->ports[index];
    attachment->end->line.paced = paced;
    return true;
}

bool live_attach_plane(struct live *live, int channel, int ifindex, struct fabric_switch *sw,
                       uint32_t number)
{
    int64_t timeout_ns = live->queues_outside ? QUEUED_TIMEOUT_NS : TRANSIT_TIMEOUT_NS;
    uint32_t index = switch_port(sw, number)->port.index;
    struct attachment *attachment = attach(live, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->sw = sw;
    attachment->number = number;
    sw->config.plane = PLANE_OUTER;
    sw->config.transit_timeout = (picoseconds)((double)timeout_ns * PS_PER_NS / live->slowdown);
    sw->hand_over = hand_over;
    sw->lost_outside = lost_outside;
    sw->outer = live;
    return true;
}

void live_queue_outside(struct live *live)
{
    live->queues_outside = true;
}

size_t live_curves_bytes(void)
{
    return sizeof(struct wred_curves);
}

void live_set_marker(struct live *live, uint32_t *depths, void *curves)
{
    struct wred_curves *of_port = curves;
    struct fabric *fabric = live->fabric;
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        for (uint32_t number = 1; number <= fabric->switches[i]->config.ports; number++) {
            struct switch_port *own = switch_port(fabric->switches[i], number);
            own->depth = depths + (size_t)own->port.index * PRIORITIES;
            own->outer_wred = of_port[own->port.index].wred;
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

int64_t live_timeline(const struct live *live, int64_t *rows)
{
    memcpy(rows, live->timeline.slots, sizeof live->timeline.slots);
    return live->timeline.slot_ns;
}

void live_lost(struct live *live, uint64_t *frames)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < live->channel_count; i++)
        count_drops(live, live->channels[i], now_ns);
    memcpy(frames, live->lost, sizeof live->lost);
}

uint64_t live_frames_sent(const struct live *live)
{
    return live->sent;
}

uint64_t live_frames_received(const struct live *live)
{
    return live->received;
}
