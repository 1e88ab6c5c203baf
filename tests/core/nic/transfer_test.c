/* Messages over a wire that loses nothing: segmentation, acknowledgements, order. */
#include "link/pauses.h"
#include "testbench.h"

static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

static uint32_t packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (length + mtu - 1) / mtu : 1;
}

static void transfer(enum framing framing, uint32_t mtu, int verb, uint32_t length)
{
    struct bench bench;
    struct test_wqe wqe;
    struct receive receive;
    struct qp_config config = bench_qp_config;
    config.mtu = mtu;
    bench_init(&bench, framing, &config);
    if (verb == VERB_SEND) {
        bench_receive(&bench, bench.qp[1], &receive, 33, length);
        bench_send(&bench, bench.qp[0], &wqe, 77, length);
    } else {
        bench_write(&bench, bench.qp[0], &wqe, 77, 33, length);
    }
    bench_run(&bench, PS_PER_MS);

    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT(bench_arrived(&bench, 1, 77, 33, length));
    EXPECT(bench_untouched(&bench, 1, 33, length));
    EXPECT_EQUAL(length, wqe.record.delivered_bytes);
    EXPECT_EQUAL(0, wqe.record.retransmitted_packets);
    EXPECT(wqe.record.started_ps <= wqe.record.first_sent_ps &&
           wqe.record.first_sent_ps < wqe.record.delivered_ps &&
           wqe.record.delivered_ps < wqe.record.completed_ps);

    uint32_t packets = packets_of(length, mtu), first = verb == VERB_SEND ? 0 : 6;
    EXPECT_EQUAL(packets, bench_count(&bench, 0, -1));
    for (uint32_t i = 0; i < packets; i++) {
        const struct packet_record *packet = bench_find(&bench, 0, -1, i);
        bool starts = i == 0, ends = i == packets - 1;
        uint32_t opcode = first + (starts && ends ? 4u : starts ? 0u : ends ? 2u : 1u);
        uint32_t bytes = ends ? length - i * mtu : mtu;
        uint32_t reth = starts && verb == VERB_WRITE ? RETH_BYTES : 0;
        EXPECT_EQUAL(opcode, packet->bth.opcode);
        EXPECT_EQUAL(1000 + i, packet->bth.psn);
        EXPECT_EQUAL(BTH_BYTES + reth + (bytes + 3) / 4 * 4, packet->body_bytes);
        EXPECT_EQUAL((4 - bytes % 4) % 4, packet->bth.pad);
        EXPECT(packet->bth.mig_req && packet->bth.pkey == 0xFFFF);
        if (reth)
            EXPECT(packet->reth.va == FIRST_VA + 33 && packet->reth.dma_length == length);
    }
    EXPECT_EQUAL(0, bench.pool.in_use);
    bench_free(&bench);
}

TEST(message_of_any_length_is_segmented_and_arrives_whole)
{
    for (int f = 0; f < 2; f++)
        for (size_t m = 0; m < sizeof mtus / sizeof *mtus; m++) {
            uint32_t mtu = mtus[m];
            const uint32_t lengths[] = {0,   1,       3,           4,       mtu - 1,
                                        mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 5 * mtu + 7};
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                transfer(bench_framings[f], mtu, VERB_WRITE, lengths[l]);
                transfer(bench_framings[f], mtu, VERB_SEND, lengths[l]);
            }
        }
}

TEST(ack_comes_every_sixteen_packets_and_at_the_end)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 40 * 1024);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(3, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
    const uint32_t acknowledged[] = {1015, 1031, 1039}, msn[] = {0, 0, 1};
    for (uint32_t i = 0; i < 3; i++) {
        const struct packet_record *ack = bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, i);
        EXPECT_EQUAL(acknowledged[i], ack->bth.psn);
        EXPECT_EQUAL(AETH_ACK, ack->aeth.syndrome);
        EXPECT_EQUAL(msn[i], ack->aeth.msn);
    }
    bench_free(&bench);
}

TEST(messages_in_both_directions_keep_their_order)
{
    enum { MESSAGES = 50, BYTES = 3000 };
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqes[2][MESSAGES];
        bench_init(&bench, bench_framings[f], &bench_qp_config);
        for (uint32_t i = 0; i < MESSAGES; i++)
            for (int side = 0; side < 2; side++)
                bench_write(&bench, bench.qp[side], &wqes[side][i], i * BYTES, i * BYTES, BYTES);
        bench_run(&bench, PS_PER_MS);
        for (int side = 0; side < 2; side++) {
            EXPECT(bench_arrived(&bench, !side, 0, 0, MESSAGES * BYTES));
            EXPECT(bench_untouched(&bench, !side, 0, MESSAGES * BYTES));
            for (uint32_t i = 0; i < MESSAGES; i++) {
                EXPECT_EQUAL(STATUS_SUCCESS, wqes[side][i].record.status);
                if (i)
                    EXPECT(wqes[side][i].record.delivered_ps >
                           wqes[side][i - 1].record.delivered_ps);
            }
        }
        bench_free(&bench);
    }
}

TEST(psns_wrap_within_a_message)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqes[2];
        struct qp_config config = bench_qp_config;
        config.psn = 0xFFFFFD;
        bench_init(&bench, bench_framings[f], &config);
        bench.plan[0][2] = DROP; /* PSN 0xFFFFFF */
        bench_write(&bench, bench.qp[0], &wqes[0], 0, 0, 8 * 1024);
        bench_write(&bench, bench.qp[0], &wqes[1], 8192, 8192, 100);
        bench_run(&bench, PS_PER_MS);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
        EXPECT(bench_arrived(&bench, 1, 0, 0, 8292));
        EXPECT_EQUAL(0xFFFFFF, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0)->bth.psn);
        EXPECT_EQUAL(AETH_NAK_PSN_SEQUENCE_ERROR,
                     bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0)->aeth.syndrome);
        EXPECT_EQUAL(4, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 1)->bth.psn);
        EXPECT_EQUAL(5, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 2)->bth.psn);
        bench_free(&bench);
    }
}

TEST(packets_in_flight_stay_within_the_window)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.window = 4;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 64 * 1024);
    for (int step = 0; step < 2000; step++) {
        bench_run(&bench, 50 * PS_PER_NS);
        EXPECT(bench.qp[0]->requester.next - bench.qp[0]->requester.unacked <= 4);
    }
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT(bench_arrived(&bench, 1, 0, 0, 64 * 1024));
    bench_free(&bench);
}

TEST(queue_pairs_share_the_line_packet_by_packet)
{
    struct bench bench;
    struct test_wqe wqes[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp *second = bench_add_pair(&bench, &bench_qp_config);
    bench_write(&bench, bench.qp[0], &wqes[0], 0, 0, 100 * 1024);
    bench_write(&bench, second, &wqes[1], 0, 500000, 100 * 1024);
    bench_run(&bench, PS_PER_MS);
    for (uint32_t i = 2; i < 199; i++) {
        uint32_t previous = bench_find(&bench, 0, -1, i - 1)->bth.dest_qp;
        EXPECT(bench_find(&bench, 0, -1, i)->bth.dest_qp != previous);
    }
    EXPECT(bench_arrived(&bench, 1, 0, 500000, 100 * 1024));
    bench_free(&bench);
}

TEST(lone_message_takes_the_calculated_time)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.mtu = 4096;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 1 << 20);
    bench_run(&bench, PS_PER_MS);
    /* On the wire the first packet of a WRITE with P bytes of payload takes P+98 bytes, the others
     * P+82. The first is serialised on both lines; the others follow it on the second. */
    picoseconds bytes = 2 * (4096 + 98) + 255 * (4096 + 82);
    EXPECT_EQUAL(bytes * 80 + 2 * CABLE_DELAY, wqe.record.delivered_ps);
    EXPECT_EQUAL(wqe.record.delivered_ps + 2 * (86 * 80 + CABLE_DELAY), wqe.record.completed_ps);
    bench_free(&bench);
}

TEST(paused_priority_stops_data_and_its_acks)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    port_pause_peer(&bench.wire[0], 26 >> 3, true, 0);
    bench_run(&bench, 10 * PS_PER_US);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 10000);
    bench_run(&bench, 100 * PS_PER_US);
    EXPECT_EQUAL(0, bench_count(&bench, 0, -1));
    port_pause_peer(&bench.wire[0], 26 >> 3, false, bench.clock.now);
    bench_run(&bench, 100 * PS_PER_US);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    bench_free(&bench);
}

MAIN(RUN(message_of_any_length_is_segmented_and_arrives_whole),
     RUN(ack_comes_every_sixteen_packets_and_at_the_end),
     RUN(messages_in_both_directions_keep_their_order), RUN(psns_wrap_within_a_message),
     RUN(packets_in_flight_stay_within_the_window),
     RUN(queue_pairs_share_the_line_packet_by_packet), RUN(lone_message_takes_the_calculated_time),
     RUN(paused_priority_stops_data_and_its_acks))
