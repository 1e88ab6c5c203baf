/* Packets of switches that Open vSwitch forwards on the exact clock, and the eBPF marker. */
#define _GNU_SOURCE /* struct mmsghdr */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/exact_state.h"
#include "headers/ipv4.h"
#include "switch/transit.h"

enum {
    /* The receive buffer of Open vSwitch's socket on a port, and what a frame takes of it at most:
     * its bytes, rounded up to a power of two, and the kernel's own structures. */
    DATAPATH_ROOM = 150000,
    DATAPATH_FRAME = 1024,
    DATAPATH_FRAMES = 512, /* of all ports */
    MARKED_BYTES = 128,    /* of a frame, for the marker: all headers */
};

/* ---- packets through Open vSwitch --------------------------------------------------- */

/* The part of the socket's receive buffer that a packet takes in the datapath, at most. */
static uint32_t room_in_datapath(uint32_t length)
{
    return 2 * length + DATAPATH_FRAME;
}

static void await_room(struct exact_driver *driver, const struct attachment *to, uint32_t room)
{
    int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    exact_flush(driver);
    exact_drain(driver);
    while ((to->in_datapath + room > DATAPATH_ROOM || driver->in_datapath >= DATAPATH_FRAMES) &&
           !driver->has_failed) {
        exact_wait_for_frames(driver);
        exact_drain(driver);
        if (clock_ns(CLOCK_MONOTONIC) - since_ns > driver->patience.frame_ns)
            exact_fail(driver,
                       (struct exact_failure){.kind = EXACT_LOST_IN_DATAPATH, .index = to->index});
    }
}

void exact_empty_datapath(struct exact_driver *driver)
{
    int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    exact_flush(driver);
    exact_drain(driver);
    while (driver->in_datapath && !driver->has_failed) {
        exact_wait_for_frames(driver);
        exact_drain(driver);
        if (clock_ns(CLOCK_MONOTONIC) - since_ns > driver->patience.frame_ns)
            exact_fail(driver, (struct exact_failure){.kind = EXACT_LOST_IN_DATAPATH});
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
    exact_enqueue(driver, to, frame);
}

static void await(void *datapath, struct fabric_switch *sw, const struct frame *frame)
{
    struct exact_driver *driver = datapath;
    int64_t since_ns = 0;
    if (driver->has_failed)
        return;
    exact_flush(driver);
    exact_drain(driver);
    while (!frame->out_port && !driver->has_failed) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns ? since_ns : now_ns;
        if (now_ns - since_ns > driver->patience.frame_ns)
            exact_fail(driver, (struct exact_failure){
                                   .kind = EXACT_LOST_IN_DATAPATH,
                                   .index = switch_port(sw, frame->charge.in_port)->port.index,
                                   .at_ps = frame->due_at - sw->config.latency_ps,
                                   .length = frame->length,
                                   .head = exact_head_of(frame),
                               });
        exact_wait_for_frames(driver);
        exact_drain(driver);
    }
}

void exact_take_from_datapath(struct exact_driver *driver, const struct attachment *from,
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
    struct attachment *attachment = exact_attach(driver, channel, ifindex, index);
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

/* ---- the marker --------------------------------------------------------------------- */

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
        exact_fail(driver,
                   (struct exact_failure){.kind = EXACT_NO_MARKER, .index = index, .error = errno});
        return false;
    }
    memcpy(header, head + frame->ip, IPV4_BYTES);
    return ipv4_ecn(header) == ECN_CE;
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
