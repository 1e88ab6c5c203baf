/* Frames that return to a switch from its external datapath, at every length, and frames whose VLAN
 * tag the kernel removed. */
#include <string.h>

#include "driver/rx_frame.h"
#include "switch/switch.h"
#include "switch/transit.h"
#include "testbench.h"

enum {
    PORTS = 2,
    FRAMES = 64,
    FRAME = 60,
    TAG_BYTES = 12, /* addresses; the second is the transit tag */
    SECOND_HOST = 2,
};

#define TIMEOUT (100 * PS_PER_MS)

struct setup {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct fabric_switch sw;
    struct port hosts[PORTS];
    uint64_t dropped;
    uint32_t arrived, lost;
    uint8_t handed[FRAME]; /* the last frame handed to the datapath */
};

static void at_host(struct port *port, struct frame *frame, picoseconds now)
{
    struct setup *setup = port->owner;
    (void)now;
    setup->arrived++;
    frame_free(&setup->pool, frame);
}

static const struct port_handler host_handler = {.receive = at_host};

static void hand_over(void *datapath, struct switch_port *in, const struct frame *frame,
                      picoseconds now)
{
    struct setup *setup = datapath;
    (void)in, (void)now;
    memcpy(setup->handed, frame->bytes, FRAME);
}

static void lost_in_datapath(void *datapath, picoseconds since)
{
    (void)since;
    ((struct setup *)datapath)->lost++;
}

static void setup_init(struct setup *setup)
{
    const struct switch_config config = {
        .ports = PORTS, .forwarding = FORWARDING_IPV4, .buffer = {.shared_bytes = 1 << 20}};
    const struct switch_port_config ports[PORTS] = {0};
    const uint16_t second_host = SECOND_HOST, second = 2;
    *setup = (struct setup){0};
    clock_init(&setup->clock);
    EXPECT(frame_pool_init(&setup->pool, &setup->arena, FRAMES, FRAMES, FRAME_MAX));
    EXPECT(switch_init(&setup->sw, &setup->arena, &setup->clock, &setup->pool, &config, ports));
    EXPECT(routes_add(&setup->sw.routes, &second_host, 1, &second, 1));
    setup->sw.datapath = DATAPATH_EXTERNAL;
    setup->sw.transit_timeout = TIMEOUT;
    setup->sw.lossless_dropped = &setup->dropped;
    setup->sw.external_datapath = setup;
    setup->sw.hand_over = hand_over;
    setup->sw.lost_in_datapath = lost_in_datapath;
    for (uint32_t i = 0; i < PORTS; i++) {
        struct port *host = &setup->hosts[i], *own = &switch_port(&setup->sw, i + 1)->port;
        port_init(host, &setup->arena, &setup->clock, &setup->pool, &host_handler, setup,
                  &ports[i].port);
        port_connect(host, own, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port_connect(own, host, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port_start(host, 0);
    }
    switch_start(&setup->sw, 0);
}

static void setup_free(struct setup *setup)
{
    switch_free(&setup->sw);
    arena_free(&setup->arena);
}

/* Sends an IPv4 packet from the first host to the second; the switch hands it to the datapath. */
static void send_packet(struct setup *setup)
{
    struct frame *frame = frame_new(&setup->pool, FRAME_ETHERNET, FRAME);
    memset(frame->bytes, 0, FRAME);
    uint8_t *ip = frame->bytes + 14;
    frame->bytes[12] = 0x08;
    ip[0] = 0x45;
    ip[8] = 64;
    write_be32(ip + 16, 0x0A000000u | SECOND_HOST);
    port_deliver(&switch_port(&setup->sw, 1)->port, frame, setup->clock.now);
}

static void come_back(struct setup *setup, uint32_t length)
{
    uint8_t *exact = malloc(length + !length);
    if (length)
        memcpy(exact, setup->handed, length);
    transit_returned(&setup->sw, 2, exact, length, setup->clock.now);
    free(exact);
}

static uint64_t dropped_at(struct setup *setup, uint32_t number)
{
    const struct port_counters *counters = switch_port(&setup->sw, number)->port.counters;
    uint64_t packets = 0;
    for (int tc = 0; tc < CLASSES; tc++)
        packets += counters->dropped[tc];
    return packets;
}

/* The slot of the sequence number is in use, as when thousands of packets are in transit. */
TEST(transit_overflow_is_not_a_drop_of_the_fabric)
{
    static struct setup setup;
    setup_init(&setup);
    send_packet(&setup);
    setup.sw.transit_next = TRANSIT_SLOTS;
    send_packet(&setup);
    EXPECT_EQUAL(1, switch_port(&setup.sw, 1)->counters->transit_overflow);
    EXPECT_EQUAL(1, setup.lost);
    EXPECT_EQUAL(1, setup.pool.in_use);
    EXPECT_EQUAL(0, dropped_at(&setup, 1));
    setup_free(&setup);
}

TEST(returned_frame_of_every_length_is_counted)
{
    static struct setup setup;
    setup_init(&setup);
    const struct switch_port_counters *in = switch_port(&setup.sw, 1)->counters;
    const struct switch_port_counters *out = switch_port(&setup.sw, 2)->counters;
    for (uint32_t length = 0; length < FRAME; length++) {
        send_packet(&setup);
        come_back(&setup, length);
        clock_run_until(&setup.clock, setup.clock.now + 2 * TIMEOUT);
        EXPECT_EQUAL(length + 1, out->transit_unknown);
        EXPECT_EQUAL(0, setup.pool.in_use);
        EXPECT_EQUAL(length + 1, in->transit_lost);
    }
    EXPECT_EQUAL(FRAME, setup.lost);
    EXPECT_EQUAL(0, setup.arrived);
    EXPECT_EQUAL(0, dropped_at(&setup, 1));
    send_packet(&setup);
    come_back(&setup, FRAME);
    clock_run_until(&setup.clock, setup.clock.now + TIMEOUT);
    EXPECT_EQUAL(1, setup.arrived);
    setup_free(&setup);
}

TEST(vlan_tag_is_restored_at_every_length)
{
    for (uint32_t length = 0; length <= FRAME; length++) {
        uint8_t *room = malloc(VLAN_TAG_BYTES + length + !length);
        memset(room, 0xAA, VLAN_TAG_BYTES + length);
        struct rx_frame rx = {.bytes = room + VLAN_TAG_BYTES, .length = length};
        rx_frame_restore_vlan_tag(&rx, ETHERTYPE_VLAN_TAG, 7);
        bool has_place = length >= VLAN_TAG_OFFSET;
        EXPECT_EQUAL(length + (has_place ? VLAN_TAG_BYTES : 0), rx.length);
        if (has_place)
            EXPECT_EQUAL(ETHERTYPE_VLAN_TAG, read_be16(rx.bytes + VLAN_TAG_OFFSET));
        free(room);
    }
}

MAIN(RUN(transit_overflow_is_not_a_drop_of_the_fabric),
     RUN(returned_frame_of_every_length_is_counted), RUN(vlan_tag_is_restored_at_every_length))
