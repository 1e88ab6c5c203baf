/* The choice among next hops, packet by packet: which fields and times matter to each scheme, and
 * how evenly those that choose for each packet fill the ports. */
#include "switch/load_balance.h"

#include <string.h>

#include "headers/roce.h"
#include "testbench.h"

enum { IP = 14, STORED = IP + 24 + 8 + 12, FLOWS = 64, PORTS = 3, LONGEST = 4154, SEED = 1 };

#define GAP (50 * PS_PER_US)

static const uint16_t all[PORTS] = {2, 3, 5}, without_3[] = {2, 5};

/* The fields by which flows differ, and the options of the IPv4 header. */
struct flow {
    uint8_t source, destination, options; /* options: 4-byte words */
    uint8_t protocol;                     /* 0: UDP */
    uint16_t udp_source, udp_destination, fragment;
    uint32_t qp;
};

static const struct flow plain = {
    .source = 1, .destination = 2, .udp_source = 0xC000, .udp_destination = ROCE_UDP_PORT};

struct setup {
    struct arena arena;
    struct load_balancer balancer;
    uint64_t queued[8]; /* for each port number */
};

static uint64_t queued(const void *owner, uint16_t port)
{
    return ((const struct setup *)owner)->queued[port];
}

static void setup_init(struct setup *setup, enum load_balance_kind kind)
{
    const struct load_balance_config config = {.kind = (uint8_t)kind, .seed = SEED, .gap_ps = GAP};
    *setup = (struct setup){0};
    EXPECT(load_balance_init(&setup->balancer, &setup->arena, &config, 7, queued, setup));
}

static void setup_free(struct setup *setup)
{
    load_balance_free(&setup->balancer);
    arena_free(&setup->arena);
}

/* A packet of the flow. `filler` is in all bytes that say nothing about the flow. */
static uint16_t choose(struct setup *setup, struct flow flow, uint8_t filler, uint32_t length,
                       const uint16_t *ports, uint16_t count, picoseconds now)
{
    uint8_t bytes[STORED], *header = bytes + IP;
    struct frame frame = {.bytes = bytes, .ip = IP, .stored = STORED, .length = length};
    memset(bytes, filler, sizeof bytes);
    header[0] = (uint8_t)(0x45 + flow.options);
    header[6] = (uint8_t)(flow.fragment >> 8);
    header[7] = (uint8_t)flow.fragment;
    header[9] = flow.protocol ? flow.protocol : 17;
    memcpy(header + 12, (uint8_t[]){10, 0, 0, flow.source, 10, 0, 0, flow.destination}, 8);
    uint8_t *udp = header + 20 + 4 * flow.options;
    memcpy(udp,
           (uint8_t[]){(uint8_t)(flow.udp_source >> 8), (uint8_t)flow.udp_source,
                       (uint8_t)(flow.udp_destination >> 8), (uint8_t)flow.udp_destination},
           4);
    memcpy(udp + 8 + 5,
           (uint8_t[]){(uint8_t)(flow.qp >> 16), (uint8_t)(flow.qp >> 8), (uint8_t)flow.qp}, 3);
    return load_balance_choose(&setup->balancer, &frame, ports, count, now);
}

static uint16_t path(struct setup *setup, struct flow flow, picoseconds now)
{
    return choose(setup, flow, 0, LONGEST, all, PORTS, now);
}

/* A packet of any flow, for schemes that look at no flow. */
static uint16_t next(struct setup *setup, uint32_t length, const uint16_t *ports, uint16_t count)
{
    return choose(setup, plain, 0, length, ports, count, 0);
}

/* One of many flows between two hosts. */
static struct flow flow_number(int number)
{
    struct flow flow = plain;
    flow.udp_source += (uint16_t)number;
    return flow;
}

TEST(ecmp_looks_at_addresses_and_udp_ports_alone)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ECMP);
    unsigned by_source = 0, by_destination = 0, by_udp_source = 0, by_udp_destination = 0;
    for (uint8_t i = 0; i < FLOWS; i++) {
        struct flow one = plain, other = plain, third = plain, fourth = plain, queue_pair = plain;
        one.source = other.destination = i;
        third.udp_source += i, fourth.udp_destination += i, queue_pair.qp = i;
        by_source |= 1u << path(&setup, one, 0);
        by_destination |= 1u << path(&setup, other, 0);
        by_udp_source |= 1u << path(&setup, third, 0);
        by_udp_destination |= 1u << path(&setup, fourth, 0);
        EXPECT_EQUAL(path(&setup, plain, 0),
                     choose(&setup, queue_pair, i, 64u + i, all, PORTS, i * PS_PER_S));
    }
    const unsigned every_port = 1 << 2 | 1 << 3 | 1 << 5;
    EXPECT_EQUAL(every_port, by_source);
    EXPECT_EQUAL(every_port, by_destination);
    EXPECT_EQUAL(every_port, by_udp_source);
    EXPECT_EQUAL(every_port, by_udp_destination);
    setup_free(&setup);
}

/* Later fragments have no UDP header: what stands there must not move them. The first has one. */
TEST(later_fragments_of_a_host_pair_stay_together)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ECMP);
    unsigned of_first = 0, of_later = 0;
    for (int i = 0; i < FLOWS; i++) {
        struct flow first = flow_number(i), later = first;
        first.fragment = 0x2000, later.fragment = 0x2001; /* more fragments follow */
        of_first |= 1u << path(&setup, first, 0);
        of_later |= 1u << path(&setup, later, 0);
    }
    EXPECT(__builtin_popcount(of_first) > 1);
    EXPECT_EQUAL(1, __builtin_popcount(of_later));
    setup_free(&setup);
}

TEST(later_fragment_has_no_qp_for_ecmp_qp)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ECMP_QP);
    unsigned of_later = 0;
    for (int i = 0; i < FLOWS; i++) {
        struct flow later = plain;
        later.qp = (uint32_t)i, later.fragment = 1;
        of_later |= 1u << path(&setup, later, 0);
    }
    EXPECT_EQUAL(1, __builtin_popcount(of_later));
    setup_free(&setup);
}

TEST(ecmp_moves_only_flows_of_a_lost_next_hop)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ECMP);
    int moved = 0;
    for (int i = 0; i < FLOWS; i++) {
        uint16_t before = path(&setup, flow_number(i), 0);
        uint16_t after = choose(&setup, flow_number(i), 0, LONGEST, without_3, 2, 0);
        EXPECT(before == 3 || after == before);
        moved += after != before;
    }
    EXPECT(moved > 0);
    setup_free(&setup);
}

TEST(ecmp_qp_adds_the_qp_of_roce_packets_alone)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ECMP_QP);
    unsigned of_roce = 0, of_others = 0;
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct flow roce = plain, other = plain;
        roce.qp = other.qp = i << 16; /* all three bytes count */
        other.udp_destination = ROCE_UDP_PORT + 1;
        of_roce |= 1u << path(&setup, roce, 0);
        of_others |= 1u << path(&setup, other, 0);
    }
    EXPECT_EQUAL(PORTS, __builtin_popcount(of_roce));
    EXPECT_EQUAL(1, __builtin_popcount(of_others));
    setup_free(&setup);
}

/* Pins 64 flows to port 3. Flows that differ from one of them in a single field are not pinned. */
TEST(pin_holds_for_exactly_its_flow)
{
    static struct setup pinned, ecmp;
    setup_init(&pinned, LOAD_BALANCE_PINNED);
    setup_init(&ecmp, LOAD_BALANCE_ECMP);
    for (int i = 0; i < FLOWS; i++)
        EXPECT(
            load_balance_pin(&pinned.balancer, (struct pin){.source = 1,
                                                            .destination = 2,
                                                            .udp_source = flow_number(i).udp_source,
                                                            .port = 3}));
    int elsewhere = 0;
    for (int i = 0; i < FLOWS; i++) {
        struct flow flow = flow_number(i), with_options = flow;
        with_options.options = 1;
        EXPECT_EQUAL(3, path(&pinned, flow, 0));
        EXPECT_EQUAL(3, path(&pinned, with_options, 0));
        elsewhere += path(&ecmp, flow, 0) != 3;
        struct flow others[] = {flow, flow, flow, flow, flow};
        others[0].source = 3, others[1].destination = 3, others[2].udp_source += FLOWS;
        others[3].protocol = 6, others[4].fragment = 1; /* TCP, and no first fragment */
        for (int j = 0; j < 5; j++)
            EXPECT_EQUAL(path(&ecmp, others[j], 0), path(&pinned, others[j], 0));
    }
    EXPECT(elsewhere > 0);
    setup_free(&pinned);
    setup_free(&ecmp);
}

TEST(pin_to_a_port_that_is_no_next_hop_gives_way_to_ecmp)
{
    static struct setup pinned, ecmp;
    setup_init(&pinned, LOAD_BALANCE_PINNED);
    setup_init(&ecmp, LOAD_BALANCE_ECMP);
    for (int i = 0; i < FLOWS; i++) {
        struct flow flow = flow_number(i);
        EXPECT(load_balance_pin(
            &pinned.balancer,
            (struct pin){.source = 1, .destination = 2, .udp_source = flow.udp_source, .port = 3}));
        EXPECT_EQUAL(choose(&ecmp, flow, 0, LONGEST, without_3, 2, 0),
                     choose(&pinned, flow, 0, LONGEST, without_3, 2, 0));
    }
    setup_free(&pinned);
    setup_free(&ecmp);
}

/* A flow that sends for many gaps, but is never silent for longer than one. */
TEST(flowlet_keeps_the_ecmp_path_without_a_gap)
{
    static struct setup setup, ecmp;
    setup_init(&setup, LOAD_BALANCE_FLOWLET);
    setup_init(&ecmp, LOAD_BALANCE_ECMP);
    for (int i = 0; i < FLOWS; i++)
        for (picoseconds now = 0; now < 10 * GAP; now += GAP)
            EXPECT_EQUAL(path(&ecmp, flow_number(i), 0), path(&setup, flow_number(i), now));
    setup_free(&setup);
    setup_free(&ecmp);
}

/* After each gap the flow has a path for its next packets, and takes every port in the end.
 * Another flow, which is never silent, keeps its own. */
TEST(flowlet_has_one_path_from_gap_to_gap)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_FLOWLET);
    struct flow busy = flow_number(1);
    uint16_t of_busy = path(&setup, busy, 0);
    unsigned taken = 0;
    for (picoseconds now = 0, round = 0; round < FLOWS; round++, now += GAP + 1) {
        uint16_t port = path(&setup, plain, now);
        taken |= 1u << port;
        for (int packet = 0; packet < 3; packet++) {
            EXPECT_EQUAL(of_busy, path(&setup, busy, now));
            EXPECT_EQUAL(port, path(&setup, plain, now));
            now += GAP / 2;
        }
        EXPECT_EQUAL(of_busy, path(&setup, busy, now));
        now -= GAP / 2; /* of the flow's last packet */
    }
    EXPECT_EQUAL(1 << 2 | 1 << 3 | 1 << 5, taken);
    setup_free(&setup);
}

TEST(flowlet_leaves_a_lost_next_hop_within_its_gap)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_FLOWLET);
    int left = 0;
    for (int i = 0; i < FLOWS; i++) {
        uint16_t before = path(&setup, flow_number(i), 0);
        uint16_t after = choose(&setup, flow_number(i), 0, LONGEST, without_3, 2, 1);
        EXPECT(before == 3 ? after != 3 : after == before);
        EXPECT_EQUAL(after, path(&setup, flow_number(i), 2)); /* the link is back */
        left += before == 3;
    }
    EXPECT(left > 0);
    setup_free(&setup);
}

/* At every moment, for any lengths on the wire: no frame has its payload stored. */
TEST(spray_keeps_ports_equal_to_within_a_packet)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_SPRAY);
    struct rng rng = {.state = 3};
    uint64_t bytes[8] = {0};
    setup.queued[2] = 1 << 20; /* queues do not matter */
    for (int packet = 0; packet < 10000; packet++) {
        uint32_t length = 62 + rng_u32(&rng) % (LONGEST - 61);
        bytes[next(&setup, length, all, PORTS)] += length;
        for (int i = 0; i < PORTS; i++)
            for (int j = 0; j < PORTS; j++)
                EXPECT(bytes[all[i]] <= bytes[all[j]] + LONGEST);
    }
    setup_free(&setup);
}

TEST(adaptive_takes_the_shortest_queue)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ADAPTIVE);
    for (int shortest = 0; shortest < PORTS; shortest++)
        for (int packet = 0; packet < 10; packet++) {
            for (int i = 0; i < PORTS; i++)
                setup.queued[all[i]] = 1000;
            setup.queued[all[shortest]] = 999;
            EXPECT_EQUAL(all[shortest], next(&setup, LONGEST, all, PORTS));
        }
    setup_free(&setup);
}

/* Port 2 got a long packet while its queue was short; ports 3 and 5 then catch up. */
TEST(adaptive_takes_the_least_used_of_equal_queues)
{
    static struct setup setup;
    setup_init(&setup, LOAD_BALANCE_ADAPTIVE);
    setup.queued[3] = setup.queued[5] = 1;
    EXPECT_EQUAL(2, next(&setup, 4000, all, PORTS));
    setup.queued[2] = 1;
    for (int packet = 0; packet < 4; packet++) {
        EXPECT_EQUAL(3, next(&setup, 1000, all, PORTS));
        EXPECT_EQUAL(5, next(&setup, 1000, all, PORTS));
    }
    EXPECT_EQUAL(2, next(&setup, 1000, all, PORTS));
    setup_free(&setup);
}

/* Port 3 comes back after the others have sent much. */
TEST(returning_port_gets_no_more_than_its_share)
{
    static const enum load_balance_kind kinds[] = {LOAD_BALANCE_SPRAY, LOAD_BALANCE_ADAPTIVE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static struct setup setup;
        int packets[8] = {0};
        setup_init(&setup, kinds[i]);
        for (int packet = 0; packet < 100; packet++)
            EXPECT(next(&setup, LONGEST, without_3, 2) != 3);
        load_balance_forget(&setup.balancer);
        for (int packet = 0; packet < 30; packet++)
            packets[next(&setup, LONGEST, all, PORTS)]++;
        EXPECT_EQUAL(10, packets[2]);
        EXPECT_EQUAL(10, packets[3]);
        EXPECT_EQUAL(10, packets[5]);
        setup_free(&setup);
    }
}

TEST(forgetting_clears_the_count_of_the_last_port)
{
    static struct setup setup;
    static const uint16_t first = 1, last = 7, both[] = {7, 1};
    setup_init(&setup, LOAD_BALANCE_SPRAY);
    EXPECT_EQUAL(last, next(&setup, LONGEST, &last, 1));
    load_balance_forget(&setup.balancer);
    EXPECT_EQUAL(first, next(&setup, 62, &first, 1));
    EXPECT_EQUAL(last, next(&setup, 62, both, 2));
    setup_free(&setup);
}

MAIN(RUN(ecmp_looks_at_addresses_and_udp_ports_alone),
     RUN(later_fragments_of_a_host_pair_stay_together),
     RUN(ecmp_moves_only_flows_of_a_lost_next_hop), RUN(ecmp_qp_adds_the_qp_of_roce_packets_alone),
     RUN(later_fragment_has_no_qp_for_ecmp_qp), RUN(pin_holds_for_exactly_its_flow),
     RUN(pin_to_a_port_that_is_no_next_hop_gives_way_to_ecmp),
     RUN(flowlet_keeps_the_ecmp_path_without_a_gap), RUN(flowlet_has_one_path_from_gap_to_gap),
     RUN(flowlet_leaves_a_lost_next_hop_within_its_gap),
     RUN(spray_keeps_ports_equal_to_within_a_packet), RUN(adaptive_takes_the_shortest_queue),
     RUN(adaptive_takes_the_least_used_of_equal_queues),
     RUN(returning_port_gets_no_more_than_its_share),
     RUN(forgetting_clears_the_count_of_the_last_port))
