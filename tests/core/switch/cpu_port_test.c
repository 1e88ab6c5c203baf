/* Packets of a switch's own control plane: which ones it gets, and how its own leave. */
#include <string.h>

#include "switch/cpu_port.h"
#include "switch/switch.h"
#include "testbench.h"

enum {
    PORTS = 2,
    FRAMES = 16,
    FRAME = 90,
    CONTROL_CLASS = 7,
    DSCP_CONTROL = 48,
    CLASS_OF_DSCP = 6
};

static const uint8_t neighbour[16] = {0xFE, 0x80, [15] = 1}, all_routers[16] = {0xFF, 2, [15] = 2},
                     elsewhere[16] = {0x20, 1, [15] = 1};

struct setup {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct fabric_switch sw;
    struct port far[PORTS];
    uint64_t dropped;
    uint32_t at_cpu, arrived;
    uint8_t arrived_class;
};

static void at_far_end(struct port *port, struct frame *frame, picoseconds now)
{
    struct setup *setup = port->owner;
    (void)now;
    setup->arrived++;
    setup->arrived_class = frame->tc;
    frame_free(&setup->pool, frame);
}

static const struct port_handler far_handler = {.receive = at_far_end};

static void at_cpu(void *control_plane, struct switch_port *in, struct frame *frame,
                   picoseconds now)
{
    struct setup *setup = control_plane;
    (void)now;
    setup->at_cpu += in->port.number == 1;
    frame_free(&setup->pool, frame);
}

static void setup_init(struct setup *setup)
{
    const struct switch_config config = {
        .ports = PORTS, .forwarding = FORWARDING_IPV4, .buffer = {.shared_bytes = 1 << 20}};
    const struct switch_port_config ports[PORTS] = {
        {.qos_map.of_dscp = {[DSCP_CONTROL] = CLASS_OF_DSCP}}};
    *setup = (struct setup){0};
    clock_init(&setup->clock);
    EXPECT(frame_pool_init(&setup->pool, &setup->arena, FRAMES, FRAMES, FRAME_MAX));
    EXPECT(switch_init(&setup->sw, &setup->arena, &setup->clock, &setup->pool, &config, ports));
    setup->sw.lossless_dropped = &setup->dropped;
    setup->sw.to_cpu = at_cpu;
    setup->sw.control_plane = setup;
    setup->sw.cpu_class = CONTROL_CLASS;
    for (uint32_t i = 0; i < PORTS; i++) {
        struct port *far = &setup->far[i], *own = &switch_port(&setup->sw, i + 1)->port;
        port_init(far, &setup->arena, &setup->clock, &setup->pool, &far_handler, setup,
                  &ports[i].port);
        port_connect(far, own, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port_connect(own, far, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port_start(far, 0);
    }
    switch_start(&setup->sw, 0);
}

static void setup_free(struct setup *setup)
{
    switch_free(&setup->sw);
    arena_free(&setup->arena);
}

static void write_packet(uint8_t *bytes, const uint8_t destination[16])
{
    memset(bytes, 0, FRAME);
    bytes[12] = 0x86;
    bytes[13] = 0xDD;
    bytes[14] = 0x60 | DSCP_CONTROL >> 2;
    bytes[15] = (uint8_t)(DSCP_CONTROL << 6);
    memcpy(bytes + 14 + 24, destination, 16);
}

/* A packet arrives at port 1. `length`: of the part that is there. */
static void arrives(struct setup *setup, const uint8_t destination[16], uint32_t length,
                    bool corrupt)
{
    uint8_t bytes[FRAME];
    write_packet(bytes, destination);
    struct frame *frame = frame_new(&setup->pool, FRAME_ETHERNET, length);
    memcpy(frame->bytes, bytes, length);
    frame->corrupt = corrupt;
    port_deliver(&switch_port(&setup->sw, 1)->port, frame, setup->clock.now);
}

static void send(struct setup *setup, uint32_t length)
{
    uint8_t *bytes = calloc(1, length);
    cpu_port_send(&setup->sw, 2, bytes, length, setup->clock.now);
    free(bytes);
    clock_run_until(&setup->clock, setup->clock.now + PS_PER_MS);
}

TEST(link_local_packets_go_to_the_control_plane)
{
    struct setup setup;
    setup_init(&setup);
    arrives(&setup, neighbour, FRAME, false);
    arrives(&setup, all_routers, FRAME, false);
    struct switch_port *in = switch_port(&setup.sw, 1);
    EXPECT_EQUAL(2, setup.at_cpu);
    EXPECT_EQUAL(2, in->counters->to_cpu);
    EXPECT_EQUAL(0, in->counters->not_ip);
    EXPECT_EQUAL(2, in->port.traffic[CLASS_OF_DSCP].rx_packets);
    setup_free(&setup);
}

TEST(others_are_refused)
{
    struct setup setup;
    setup_init(&setup);
    struct switch_port *in = switch_port(&setup.sw, 1);
    arrives(&setup, elsewhere, FRAME, false);
    arrives(&setup, neighbour, 14 + 39, false); /* no whole header */
    EXPECT_EQUAL(2, in->counters->not_ip);
    arrives(&setup, neighbour, FRAME, true);
    EXPECT_EQUAL(1, in->counters->corrupt);
    setup.sw.config.cut_through = true;
    arrives(&setup, neighbour, FRAME, true);
    EXPECT_EQUAL(2, in->counters->corrupt);
    setup.sw.to_cpu = NULL;
    arrives(&setup, neighbour, FRAME, false);
    EXPECT_EQUAL(3, in->counters->not_ip);
    EXPECT_EQUAL(0, setup.at_cpu);
    setup_free(&setup);
}

TEST(its_packets_leave_in_their_class_and_are_lost_as_others)
{
    struct setup setup;
    setup_init(&setup);
    struct switch_port *out = switch_port(&setup.sw, 2);
    send(&setup, FRAME);
    EXPECT_EQUAL(1, setup.arrived);
    EXPECT_EQUAL(1, out->port.traffic[CONTROL_CLASS].tx_packets);
    send(&setup, FRAME_MAX + 1);
    EXPECT_EQUAL(1, setup.arrived);
    EXPECT_EQUAL(1, out->counters->from_cpu);
    out->port.up = false;
    send(&setup, FRAME);
    EXPECT_EQUAL(1, setup.arrived);
    EXPECT_EQUAL(2, out->counters->from_cpu);
    EXPECT_EQUAL(1, out->port.counters->link_down_discard);
    setup_free(&setup);
}

MAIN(RUN(link_local_packets_go_to_the_control_plane), RUN(others_are_refused),
     RUN(its_packets_leave_in_their_class_and_are_lost_as_others))
