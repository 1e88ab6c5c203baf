#define _GNU_SOURCE /* epoll_pwait2 */

#include "driver/af_packet_driver.h"

#include <errno.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/fabric.h"
#include "driver/channel.h"
#include "driver/tun.h"
#include "driver/walltime.h"
#include "headers/ib_encap.h"
#include "nic/nic_api.h"
#include "observe/latency_histogram.h"
#include "switch/cpu_port.h"
#include "switch/transit.h"

enum {
    CHANNELS = 1100,
    EVENTS = 64,
    WAKE = CHANNELS,
    TUNS, /* the first of the TUN devices */
};

/* The longest time between two flushes, much shorter than TRANSIT_TIMEOUT_NS, after which a packet
 * counts as lost. */
#define STEP_NS INT64_C(20000000)
#define TRANSIT_TIMEOUT_NS INT64_C(200000000)
#define QUEUED_TIMEOUT_NS INT64_C(100000000000) /* if queues form in the external datapath */
#define LONGEST_WAIT_NS (NS_PER_S / 10)
#define ROUND_NS (NS_PER_S / 50) /* each round reads the lost frames of every channel once */

enum { LATE_SENT, LATE_TAKEN_IN, LATE_RETURNED, KEPT_BY_DATAPATH, HISTOGRAMS };

struct attachment {
    struct channel *channel;
    struct port *end;         /* a cable end; NULL: */
    struct fabric_switch *sw; /* a switch port: packets of the external datapath, or: */
    bool is_cpu;              /* packets of the switch's control plane */
    uint32_t number;
    struct sockaddr_ll address;
    int64_t last_stamp_ns; /* of the last frame received */
};

struct driver {
    struct fabric *fabric;
    double slowdown;
    bool queues_outside;
    int64_t t0_ns;
    int epoll_fd;
    /* What ends the run: a flag, a workload; NULL: neither. */
    const bool *finished;
    struct workload *workload;
    struct channel *channels[CHANNELS];
    int channel_count;
    struct tun tuns[CHANNELS];
    uint32_t tun_count;
    /* By port index: cable ends and the external datapath; the control planes of switches. */
    struct attachment **by_index, **cpu_by_index;
    struct histogram histograms[HISTOGRAMS];
    struct timeline timeline;
    uint64_t sent, received, lost[LOSSES], dropped;
    int64_t next_count_ns; /* when the lost frames of the next channel are read */
    int next_counted;
    struct rx_frame inbox[RECEIVE_BATCH];
    uint32_t inbox_count;
    struct receive_room room;
};

/* ---- two clocks ---------------------------------------------------------------- */

static picoseconds emulated(const struct driver *driver, int64_t wall_ns)
{
    return (picoseconds)((double)(wall_ns - driver->t0_ns) * PS_PER_NS / driver->slowdown);
}

static int64_t wall_time_ns(const struct driver *driver, picoseconds at)
{
    return driver->t0_ns + (int64_t)((double)at * driver->slowdown / PS_PER_NS);
}

static void note_late(struct driver *driver, int which, int64_t late_ns, int64_t now_ns)
{
    histogram_add(&driver->histograms[which], late_ns);
    note_worst(&timeline_at(&driver->timeline, now_ns - driver->t0_ns)->late, late_ns);
}

static void note_lost(struct driver *driver, enum loss how, uint32_t frames, int64_t now_ns)
{
    if (!frames)
        return;
    driver->lost[how] += frames;
    timeline_at(&driver->timeline, now_ns - driver->t0_ns)->lost[how] += frames;
}

/* Records the lossless packets that switches dropped since the last call. */
static void note_dropped(struct driver *driver, int64_t now_ns)
{
    uint64_t dropped = driver->fabric->parts[0].lossless_dropped;
    if (dropped == driver->dropped)
        return;
    timeline_at(&driver->timeline, now_ns - driver->t0_ns)->dropped +=
        (int64_t)(dropped - driver->dropped);
    driver->dropped = dropped;
}

/* ---- sending --------------------------------------------------------------------- */

static void flush(struct driver *driver, struct channel *channel)
{
    uint32_t refused = channel_flush(channel);
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    note_lost(driver, LOST_ON_LEAVING, refused, now_ns);
    for (uint32_t i = 0; i < channel->count; i++) {
        const struct outgoing *sent = &channel->outgoing[i];
        if (!sent->owned)
            continue;
        note_late(driver, LATE_SENT, now_ns - wall_time_ns(driver, sent->due), now_ns);
        frame_free(fabric_only_pool(driver->fabric), sent->owned);
    }
    driver->sent += channel->count;
    channel->count = 0;
}

static void flush_all(struct driver *driver)
{
    for (int i = 0; i < driver->channel_count; i++)
        if (driver->channels[i]->count)
            flush(driver, driver->channels[i]);
    for (uint32_t i = 0; i < driver->tun_count; i++)
        tun_write(&driver->tuns[i], fabric_now(driver->fabric));
}

static void enqueue(struct driver *driver, struct attachment *to, const struct frame *frame,
                    struct outgoing outgoing)
{
    if (!channel_queue(to->channel, &to->address, frame, outgoing))
        flush(driver, to->channel);
}

static void emit(void *owner, struct port *end, struct frame *frame, picoseconds now)
{
    struct driver *driver = owner;
    struct attachment *to = driver->by_index[end->index];
    if (to)
        enqueue(driver, to, frame, (struct outgoing){frame, now});
    else
        frame_free(fabric_only_pool(driver->fabric), frame);
}

/* The switch keeps ownership of the frame, which is in transit. */
static void hand_over(void *datapath, struct switch_port *in, const struct frame *frame,
                      picoseconds now)
{
    struct driver *driver = datapath;
    enqueue(driver, driver->by_index[in->port.index], frame, (struct outgoing){NULL, now});
}

static void send_to_cpu(void *control_plane, struct switch_port *in, struct frame *frame,
                        picoseconds now)
{
    struct driver *driver = control_plane;
    enqueue(driver, driver->cpu_by_index[in->port.index], frame, (struct outgoing){frame, now});
}

static void lost_in_datapath(void *datapath, picoseconds since)
{
    struct driver *driver = datapath;
    note_lost(driver, LOST_IN_DATAPATH, 1, wall_time_ns(driver, since));
}

/* ---- receiving -------------------------------------------------------------------- */

static void step_until(struct driver *driver, picoseconds until)
{
    struct fabric *fabric = driver->fabric;
    picoseconds step = (picoseconds)((double)STEP_NS * PS_PER_NS / driver->slowdown);
    while (fabric_now(fabric) + step < until) {
        fabric_run(fabric, fabric_now(fabric) + step);
        flush_all(driver);
    }
    if (until > fabric_now(fabric))
        fabric_run(fabric, until);
}

static void deliver_to_end(struct driver *driver, struct port *end, const uint8_t *bytes,
                           uint32_t length)
{
    picoseconds now = fabric_now(driver->fabric);
    uint8_t kind = ib_encap_kind(bytes, length);
    if (end->framing == FRAMING_ETHERNET)
        fabric_input(driver->fabric, end->index, FRAME_ETHERNET, bytes, length, now);
    else if (kind != FRAME_ETHERNET)
        fabric_input(driver->fabric, end->index, kind, bytes + IB_ENCAP_BYTES,
                     length - IB_ENCAP_BYTES, now);
}

static void deliver_to_switch(struct driver *driver, const struct attachment *to,
                              const struct rx_frame *rx)
{
    struct transit_time time =
        transit_returned(to->sw, to->number, rx->bytes, rx->length, fabric_now(driver->fabric));
    double to_wall = driver->slowdown / PS_PER_NS;
    if (!driver->queues_outside)
        note_late(driver, LATE_RETURNED, (int64_t)((double)time.late * to_wall), rx->stamp_ns);
    int64_t kept_ns = (int64_t)((double)time.kept * to_wall);
    histogram_add(&driver->histograms[KEPT_BY_DATAPATH], kept_ns);
    note_worst(&timeline_at(&driver->timeline, rx->stamp_ns - driver->t0_ns)->kept, kept_ns);
}

/* Records how late a frame was received. The kernel stamps it some time before it hands it over. */
static void note_rx_frame(struct driver *driver, struct attachment *to, const struct rx_frame *rx)
{
    driver->received++;
    if (rx->stamp_ns < to->last_stamp_ns)
        note_lost(driver, LOST_ITS_PLACE, 1, rx->stamp_ns);
    else
        to->last_stamp_ns = rx->stamp_ns;
    if (!to->end)
        return;
    picoseconds now = fabric_now(driver->fabric);
    picoseconds taken_in = now + line_backlog(&to->end->line, now);
    note_late(driver, LATE_TAKEN_IN, wall_time_ns(driver, taken_in) - rx->stamp_ns, rx->stamp_ns);
}

static void deliver(struct driver *driver, const struct rx_frame *rx)
{
    struct attachment *to = rx->to;
    step_until(driver, emulated(driver, rx->stamp_ns));
    note_rx_frame(driver, to, rx);
    if (to->end)
        deliver_to_end(driver, to->end, rx->bytes, rx->length);
    else if (to->is_cpu)
        cpu_port_send(to->sw, to->number, rx->bytes, rx->length, fabric_now(driver->fabric));
    else
        deliver_to_switch(driver, to, rx);
}

/* Sorts the frames of all channels by time (insertion sort). The frames of one channel are nearly
 * in order; only two processors at a time can disturb it. So most frames move only a little. */
static void sort_inbox(struct driver *driver)
{
    struct rx_frame *inbox = driver->inbox;
    for (uint32_t i = 1; i < driver->inbox_count; i++) {
        struct rx_frame moved = inbox[i];
        uint32_t to = i;
        for (; to > 0 && inbox[to - 1].stamp_ns > moved.stamp_ns; to--)
            inbox[to] = inbox[to - 1];
        inbox[to] = moved;
    }
}

static void process_inbox(struct driver *driver)
{
    sort_inbox(driver);
    for (uint32_t i = 0; i < driver->inbox_count; i++)
        if (driver->inbox[i].bytes)
            deliver(driver, &driver->inbox[i]);
    driver->inbox_count = 0;
    for (int i = 0; i < driver->channel_count; i++)
        channel_release(driver->channels[i]);
}

static void read_tuns(struct driver *driver)
{
    for (uint32_t i = 0; i < driver->tun_count; i++)
        tun_read(&driver->tuns[i], fabric_now(driver->fabric));
}

/* ---- frames lost on arrival --------------------------------------------------------- */

static void count_drops(struct driver *driver, struct channel *channel, int64_t now_ns)
{
    note_lost(driver, LOST_ON_ARRIVAL, channel_drops(channel), now_ns);
}

/* Counts the drops of one channel at a time: there may be hundreds, and frames must not wait. */
static void count_drops_in_turn(struct driver *driver, int64_t now_ns)
{
    if (now_ns < driver->next_count_ns || !driver->channel_count)
        return;
    driver->next_count_ns = now_ns + ROUND_NS / driver->channel_count;
    driver->next_counted = (driver->next_counted + 1) % driver->channel_count;
    count_drops(driver, driver->channels[driver->next_counted], now_ns);
}

/* ---- the loop -------------------------------------------------------------------------- */

static int wait_for_work(struct driver *driver, struct epoll_event *events, int room)
{
    picoseconds deadline = fabric_next_deadline(driver->fabric);
    int64_t left_ns = LONGEST_WAIT_NS;
    if (deadline != NEVER) {
        int64_t until = wall_time_ns(driver, deadline) - clock_ns(CLOCK_MONOTONIC);
        left_ns = until < left_ns ? until : left_ns;
    }
    if (left_ns < 0)
        left_ns = 0;
    struct timespec timeout = {left_ns / NS_PER_S, left_ns % NS_PER_S};
    int count = epoll_pwait2(driver->epoll_fd, events, room, &timeout, NULL);
    return count < 0 && errno != EINTR ? -errno : count < 0 ? 0 : count;
}

static bool is_finished(const struct driver *driver)
{
    return (driver->finished && *driver->finished) ||
           (driver->workload && workload_is_finished(driver->workload, fabric_now(driver->fabric)));
}

static int turn(struct driver *driver)
{
    struct epoll_event events[EVENTS];
    int count = wait_for_work(driver, events, EVENTS);
    if (count < 0)
        return count;
    int outcome = DRIVER_GOES_ON;
    for (int i = 0; i < count; i++) {
        uint32_t source = events[i].data.u32;
        if (source == WAKE)
            outcome = DRIVER_WOKEN;
        else if (source >= TUNS)
            driver->tuns[source - TUNS].readable = true;
        else if (driver->inbox_count < RECEIVE_BATCH)
            driver->inbox_count =
                channel_receive(driver->channels[source], driver->inbox, driver->inbox_count);
    }
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    process_inbox(driver);
    step_until(driver, emulated(driver, now_ns));
    read_tuns(driver);
    note_dropped(driver, now_ns);
    flush_all(driver);
    count_drops_in_turn(driver, now_ns);
    return is_finished(driver) ? DRIVER_FINISHED : outcome;
}

int driver_run(struct driver *driver, int64_t t0_ns, int64_t until_ns)
{
    driver->t0_ns = t0_ns;
    int outcome;
    do
        outcome = turn(driver);
    while (outcome == DRIVER_GOES_ON && clock_ns(CLOCK_MONOTONIC) < until_ns);
    return outcome == DRIVER_GOES_ON ? DRIVER_PAUSED : outcome;
}

/* ---- set-up ------------------------------------------------------------------------------ */

/* The largest frame from outside, without its VLAN tag. */
static uint32_t largest_frame(const struct fabric *fabric)
{
    return IB_ENCAP_BYTES + fabric_only_pool(fabric)->large.room;
}

struct driver *driver_new(struct fabric *fabric, double slowdown, int wake_fd)
{
    struct driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return NULL;
    driver->fabric = fabric;
    driver->slowdown = slowdown;
    driver->by_index = calloc(fabric->port_count, sizeof *driver->by_index);
    driver->cpu_by_index = calloc(fabric->port_count, sizeof *driver->cpu_by_index);
    driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.u32 = WAKE};
    if (!receive_room_init(&driver->room, largest_frame(fabric)) || !driver->by_index ||
        !driver->cpu_by_index || driver->epoll_fd < 0 ||
        epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, wake_fd, &wake) < 0) {
        driver_free(driver);
        return NULL;
    }
    fabric->emit = emit;
    fabric->driver = driver;
    return driver;
}

static void free_attachments(const struct driver *driver, struct attachment **by_index)
{
    if (by_index)
        for (uint32_t i = 0; i < driver->fabric->port_count; i++)
            free(by_index[i]);
    free(by_index);
}

void driver_free(struct driver *driver)
{
    for (int i = 0; i < driver->channel_count; i++)
        channel_free(driver->channels[i]);
    free_attachments(driver, driver->by_index);
    free_attachments(driver, driver->cpu_by_index);
    receive_room_free(&driver->room);
    if (driver->epoll_fd >= 0)
        close(driver->epoll_fd);
    free(driver);
}

int driver_add_channel(struct driver *driver, int fd, uint32_t ring_frames)
{
    if (driver->channel_count == CHANNELS)
        return -1;
    struct channel *channel =
        channel_new(fd, &driver->room, largest_frame(driver->fabric), ring_frames);
    if (!channel)
        return -1;
    struct epoll_event readable = {.events = EPOLLIN, .data.u32 = (uint32_t)driver->channel_count};
    if (epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0) {
        channel_free(channel);
        return -1;
    }
    driver->channels[driver->channel_count] = channel;
    return driver->channel_count++;
}

bool driver_add_tun(struct driver *driver, int fd, struct ipoib *ipoib)
{
    /* Edge-triggered: packets may have to wait for room, and the loop must not spin meanwhile. */
    struct epoll_event readable = {.events = EPOLLIN | EPOLLET,
                                   .data.u32 = TUNS + driver->tun_count};
    if (driver->tun_count == CHANNELS ||
        epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0)
        return false;
    driver->tuns[driver->tun_count++] = (struct tun){.fd = fd, .readable = true, .ipoib = ipoib};
    return true;
}

/* `place`: where the driver finds it again. */
static struct attachment *attach(struct driver *driver, int channel, int ifindex,
                                 struct attachment **place)
{
    struct channel *on = driver->channels[channel];
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment || !channel_attach(on, (uint32_t)ifindex, attachment)) {
        free(attachment);
        return NULL;
    }
    attachment->channel = on;
    attachment->address = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = ETH_ALEN};
    *place = attachment;
    return attachment;
}

bool driver_attach_end(struct driver *driver, int channel, int ifindex, uint32_t index, bool paced)
{
    struct attachment *attachment = attach(driver, channel, ifindex, &driver->by_index[index]);
    if (!attachment)
        return false;
    attachment->end = driver->fabric->ports[index];
    attachment->end->line.paced = paced;
    return true;
}

bool driver_attach_datapath(struct driver *driver, int channel, int ifindex,
                            struct fabric_switch *sw, uint32_t number)
{
    int64_t timeout_ns = driver->queues_outside ? QUEUED_TIMEOUT_NS : TRANSIT_TIMEOUT_NS;
    uint32_t index = switch_port(sw, number)->port.index;
    struct attachment *attachment = attach(driver, channel, ifindex, &driver->by_index[index]);
    if (!attachment)
        return false;
    attachment->sw = sw;
    attachment->number = number;
    sw->datapath = DATAPATH_EXTERNAL;
    sw->transit_timeout = (picoseconds)((double)timeout_ns * PS_PER_NS / driver->slowdown);
    sw->hand_over = hand_over;
    sw->lost_in_datapath = lost_in_datapath;
    sw->external_datapath = driver;
    return true;
}

bool driver_attach_cpu(struct driver *driver, int channel, int ifindex, struct fabric_switch *sw,
                       uint32_t number, uint32_t class)
{
    uint32_t index = switch_port(sw, number)->port.index;
    struct attachment *attachment = attach(driver, channel, ifindex, &driver->cpu_by_index[index]);
    if (!attachment)
        return false;
    attachment->sw = sw;
    attachment->number = number;
    attachment->is_cpu = true;
    sw->to_cpu = send_to_cpu;
    sw->control_plane = driver;
    sw->cpu_class = (uint8_t) class;
    return true;
}

void driver_queue_outside(struct driver *driver)
{
    driver->queues_outside = true;
}

size_t driver_curves_bytes(void)
{
    return sizeof(struct wred_curves);
}

void driver_set_marker(struct driver *driver, uint32_t *depths, void *curves)
{
    struct wred_curves *of_port = curves;
    struct fabric *fabric = driver->fabric;
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        for (uint32_t number = 1; number <= fabric->switches[i]->config.ports; number++) {
            struct switch_port *own = switch_port(fabric->switches[i], number);
            own->depth_is_posted = true;
            own->depth = depths + (size_t)own->port.index * PRIORITIES;
            own->external_wred = of_port[own->port.index].wred;
        }
}

void driver_set_finished(struct driver *driver, const bool *finished)
{
    driver->finished = finished;
}

void driver_set_workload(struct driver *driver, struct workload *workload)
{
    driver->workload = workload;
}

/* ---- lateness -------------------------------------------------------------------------------- */

void driver_histogram(const struct driver *driver, int which, uint64_t *buckets)
{
    memcpy(buckets, driver->histograms[which].count, sizeof driver->histograms[which].count);
}

int64_t driver_timeline(const struct driver *driver, int64_t *rows)
{
    memcpy(rows, driver->timeline.slots, sizeof driver->timeline.slots);
    return driver->timeline.slot_ns;
}

void driver_lost(struct driver *driver, uint64_t *frames)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < driver->channel_count; i++)
        count_drops(driver, driver->channels[i], now_ns);
    memcpy(frames, driver->lost, sizeof driver->lost);
}

uint64_t driver_frames_sent(const struct driver *driver)
{
    return driver->sent;
}

uint64_t driver_frames_received(const struct driver *driver)
{
    return driver->received;
}
