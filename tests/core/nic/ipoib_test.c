/* IP over InfiniBand between two NICs: delivery, packet format and counters. */
#include <string.h>

#include "nic/ipoib.h"
#include "testbench.h"

enum {
    MTU = 2044,
    QKEY = 0x0B1B,
    IP_A = 0x0A000001,
    IP_B = 0x0A000002,
    NOBODY = 0x0A000003,
    LID_A = 1,
    LID_B = 2,
    SENDS = 128,
    RECEIVES = 256,
};

struct pair {
    struct bench bench;
    struct ipoib *ipoib[2];
};

static void pair_init(struct pair *pair)
{
    static const struct ipoib_config config = {.mtu = MTU, .qkey = QKEY};
    bench_init(&pair->bench, FRAMING_INFINIBAND, &bench_qp_config);
    for (int side = 0; side < 2; side++)
        pair->ipoib[side] = ipoib_new(&pair->bench.nic[side], &config);
    uint32_t qpn = ipoib_qpn(pair->ipoib[0]);
    for (int side = 0; side < 2; side++) {
        const struct nic *nic = pair->bench.nic;
        EXPECT(ipoib_add_neighbour(pair->ipoib[side], IP_A, nic[0].config.address, qpn, 0));
        EXPECT(ipoib_add_neighbour(pair->ipoib[side], IP_B, nic[1].config.address, qpn, 0));
    }
}

static void pair_free(struct pair *pair)
{
    for (int side = 0; side < 2; side++)
        ipoib_free(pair->ipoib[side]);
    bench_free(&pair->bench);
}

/* Sends a packet with the IPv4 fields that the interface reads; the rest is `fill`. */
static bool send_packet(struct pair *pair, uint32_t to, uint32_t length, uint8_t fill)
{
    uint32_t room;
    uint8_t *packet = ipoib_room(pair->ipoib[0], &room);
    if (!packet)
        return false;
    memset(packet, fill, length);
    packet[0] = 0x45;
    write_be32(packet + 16, to);
    ipoib_send(pair->ipoib[0], length, pair->bench.clock.now);
    return true;
}

/* Expects the oldest packet at the other NIC to be as `send_packet` built it. */
static void expect_packet(struct pair *pair, uint32_t length, uint8_t fill)
{
    uint32_t came = 0;
    const uint8_t *packet = ipoib_received(pair->ipoib[1], &came, pair->bench.clock.now);
    EXPECT(packet);
    EXPECT_EQUAL(length, came);
    EXPECT_EQUAL(0x45, packet[0]);
    EXPECT_EQUAL(IP_B, read_be32(packet + 16));
    for (uint32_t i = 20; i < length; i++)
        EXPECT_EQUAL(fill, packet[i]);
    ipoib_taken(pair->ipoib[1], true, pair->bench.clock.now);
}

static const struct nic_counters *counters(const struct pair *pair, int side)
{
    return nic_counters(&pair->bench.nic[side]);
}

TEST(packets_of_any_length_arrive_in_order)
{
    static const uint32_t lengths[] = {20, 21, 84, 1500, MTU - 1, MTU};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    struct pair pair;
    pair_init(&pair);
    for (uint8_t i = 0; i < COUNT; i++)
        EXPECT(send_packet(&pair, IP_B, lengths[i], i));
    bench_run(&pair.bench, PS_PER_MS);
    for (uint8_t i = 0; i < COUNT; i++)
        expect_packet(&pair, lengths[i], i);
    EXPECT_EQUAL(COUNT, counters(&pair, 0)->ipoib_tx_packets);
    EXPECT_EQUAL(COUNT, counters(&pair, 1)->ipoib_rx_packets);
    pair_free(&pair);
}

static const uint8_t *seen;

static void look(const struct frame *frame)
{
    seen = frame->bytes;
    EXPECT_EQUAL(LRH_BYTES + BTH_BYTES + DETH_BYTES + 4 + 84 + ICRC_BYTES + VCRC_BYTES,
                 frame->length);
    const uint8_t *bth = frame->bytes + LRH_BYTES, *deth = bth + BTH_BYTES;
    EXPECT_EQUAL(CLASS_UD | OPCODE_SEND_ONLY, bth[0]);
    EXPECT_EQUAL(QKEY, read_be32(deth));
    EXPECT_EQUAL(0x08000000, read_be32(deth + DETH_BYTES));
    EXPECT_EQUAL(0x45, deth[DETH_BYTES + 4]);
}

TEST(ip_packet_travels_as_datagram_after_an_ethertype)
{
    struct pair pair;
    pair_init(&pair);
    pair.bench.spy = look;
    EXPECT(send_packet(&pair, IP_B, 84, 7));
    bench_run(&pair.bench, PS_PER_MS);
    EXPECT(seen);
    pair_free(&pair);
}

TEST(packet_without_a_destination_is_dropped_and_counted)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT(send_packet(&pair, NOBODY, 84, 0));
    EXPECT(send_packet(&pair, IP_B, MTU + 1, 0));
    EXPECT(send_packet(&pair, IP_B, 19, 0));
    uint32_t room;
    ipoib_room(pair.ipoib[0], &room)[0] = 0x60; /* IPv6 */
    ipoib_send(pair.ipoib[0], 84, 0);
    bench_run(&pair.bench, PS_PER_MS);
    EXPECT_EQUAL(4, counters(&pair, 0)->ipoib_tx_dropped);
    EXPECT_EQUAL(0, bench_count(&pair.bench, 0, -1));
    pair_free(&pair);
}

TEST(full_interface_has_room_after_a_packet_leaves)
{
    struct pair pair;
    pair_init(&pair);
    uint32_t sent = 0;
    while (send_packet(&pair, IP_B, MTU, (uint8_t)sent))
        sent++;
    EXPECT_EQUAL(SENDS, sent);
    bench_run(&pair.bench, PS_PER_MS);
    EXPECT(send_packet(&pair, IP_B, MTU, (uint8_t)sent));
    bench_run(&pair.bench, PS_PER_MS);
    for (uint32_t i = 0; i <= sent; i++)
        expect_packet(&pair, MTU, (uint8_t)i);
    pair_free(&pair);
}

TEST(unread_packets_overflow_and_are_counted)
{
    struct pair pair;
    pair_init(&pair);
    for (uint32_t sent = 0; sent < RECEIVES + 5; sent++) {
        EXPECT(send_packet(&pair, IP_B, 100, (uint8_t)sent));
        bench_run(&pair.bench, PS_PER_US);
    }
    bench_run(&pair.bench, PS_PER_MS);
    EXPECT_EQUAL(5, counters(&pair, 1)->out_of_buffer);
    for (uint32_t i = 0; i < RECEIVES; i++)
        expect_packet(&pair, 100, (uint8_t)i);
    uint32_t length;
    EXPECT(!ipoib_received(pair.ipoib[1], &length, 0));
    pair_free(&pair);
}

TEST(non_ip_datagrams_are_ignored)
{
    struct pair pair;
    pair_init(&pair);
    uint8_t body[BTH_BYTES + DETH_BYTES + 8] = {0};
    struct bth bth = {.opcode = CLASS_UD | OPCODE_SEND_ONLY,
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = ipoib_qpn(pair.ipoib[1])};
    bth_write(body, &bth);
    deth_write(body + BTH_BYTES, &(struct deth){.qkey = QKEY, .src_qp = 1});
    write_be32(body + BTH_BYTES + DETH_BYTES, 0x08060000); /* ARP */
    bench_inject(&pair.bench, 1, body, sizeof body);
    bench_inject(&pair.bench, 1, body, BTH_BYTES + DETH_BYTES);
    bench_run(&pair.bench, PS_PER_MS);
    uint32_t length;
    EXPECT(!ipoib_received(pair.ipoib[1], &length, 0));
    EXPECT_EQUAL(2, counters(&pair, 1)->ipoib_rx_dropped);
    pair_free(&pair);
}

TEST(rdma_and_ip_share_the_line)
{
    struct pair pair;
    struct test_wqe wqe = {0};
    pair_init(&pair);
    bench_write(&pair.bench, pair.bench.qp[0], &wqe, 0, 0, 100000);
    for (uint32_t i = 0; i < 20; i++)
        EXPECT(send_packet(&pair, IP_B, 1000, (uint8_t)i));
    bench_run(&pair.bench, 5 * PS_PER_US); /* the WRITE alone takes 8 us */
    for (uint32_t i = 0; i < 20; i++)
        expect_packet(&pair, 1000, (uint8_t)i);
    EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
    bench_run(&pair.bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    pair_free(&pair);
}

MAIN(RUN(packets_of_any_length_arrive_in_order),
     RUN(ip_packet_travels_as_datagram_after_an_ethertype),
     RUN(packet_without_a_destination_is_dropped_and_counted),
     RUN(full_interface_has_room_after_a_packet_leaves),
     RUN(unread_packets_overflow_and_are_counted), RUN(non_ip_datagrams_are_ignored),
     RUN(rdma_and_ip_share_the_line))
