/* Recovery from lost, repeated, reordered and damaged packets. */
#include "link/pauses.h"
#include "testbench.h"

enum { PACKETS = 12, BYTES = PACKETS * 1024 - 100 };

#define ACK_TIMEOUT (INT64_C(4096) * PS_PER_NS << 8)

static void start(struct bench *bench, enum framing framing, struct test_wqe *wqe)
{
    bench_init(bench, framing, &bench_qp_config);
    bench_write(bench, bench->qp[0], wqe, 5, 11, BYTES);
}

static void expect_whole(struct bench *bench, const struct test_wqe *wqe)
{
    EXPECT_EQUAL(STATUS_SUCCESS, wqe->record.status);
    EXPECT(bench_arrived(bench, 1, 5, 11, BYTES));
    EXPECT(bench_untouched(bench, 1, 11, BYTES));
    EXPECT_EQUAL(BYTES, wqe->record.delivered_bytes);
    EXPECT_EQUAL(0, bench->pool.in_use);
}

TEST(packet_lost_at_any_position_is_retransmitted)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t lost = 0; lost < PACKETS; lost++) {
            struct bench bench;
            struct test_wqe wqe;
            start(&bench, bench_framings[f], &wqe);
            bench.plan[0][lost] = DROP;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &wqe);
            /* No packet follows the last one, so only the timer detects its loss. */
            bool last = lost == PACKETS - 1;
            EXPECT_EQUAL(last, nic_counters(&bench.nic[0])->local_ack_timeout_err);
            EXPECT_EQUAL(!last, nic_counters(&bench.nic[0])->packet_seq_err);
            /* A NAK names the lost packet; the timer only shows that nothing was acknowledged. */
            uint32_t again = last ? PACKETS : PACKETS - lost;
            EXPECT_EQUAL(again, wqe.record.retransmitted_packets);
            EXPECT_EQUAL(again, nic_counters(&bench.nic[0])->retransmitted_packets);
            bench_free(&bench);
        }
}

TEST(lost_ack_costs_a_timeout_and_duplicates)
{
    struct bench bench;
    struct test_wqe wqe;
    start(&bench, FRAMING_ETHERNET, &wqe);
    bench.plan[1][0] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &wqe);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    /* The first duplicate's ACK acknowledges everything; the other duplicates were in flight. */
    EXPECT(nic_counters(&bench.nic[1])->duplicate_request >= 1);
    EXPECT_EQUAL(1012 - 1, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 1)->bth.psn);
    bench_free(&bench);
}

TEST(responder_sends_one_nak_per_gap)
{
    struct bench bench;
    struct test_wqe wqe;
    start(&bench, FRAMING_ETHERNET, &wqe);
    bench.plan[0][2] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &wqe);
    EXPECT_EQUAL(PACKETS - 3, nic_counters(&bench.nic[1])->out_of_sequence);
    EXPECT_EQUAL(2, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
    const struct packet_record *nak = bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0);
    EXPECT_EQUAL(AETH_NAK_PSN_SEQUENCE_ERROR, nak->aeth.syndrome);
    EXPECT_EQUAL(1002, nak->bth.psn);
    bench_free(&bench);
}

TEST(timer_recovers_from_a_lost_nak)
{
    struct bench bench;
    struct test_wqe wqe;
    start(&bench, FRAMING_ETHERNET, &wqe);
    bench.plan[0][2] = DROP;
    bench.plan[1][0] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &wqe);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(0, nic_counters(&bench.nic[0])->packet_seq_err);
    bench_free(&bench);
}

TEST(repeated_packet_is_executed_once)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqe;
        start(&bench, bench_framings[f], &wqe);
        for (int i = 0; i < PACKETS; i++)
            bench.plan[0][i] = bench.plan[1][i] = TWICE;
        bench_run(&bench, 10 * PS_PER_MS);
        expect_whole(&bench, &wqe);
        EXPECT_EQUAL(PACKETS, nic_counters(&bench.nic[1])->duplicate_request);
        EXPECT_EQUAL(0, wqe.record.retransmitted_packets);
        bench_free(&bench);
    }
}

TEST(reordered_packets_are_requested_again)
{
    for (int f = 0; f < 2; f++)
        for (int held = 0; held < PACKETS - 1; held++) {
            struct bench bench;
            struct test_wqe wqe;
            start(&bench, bench_framings[f], &wqe);
            bench.plan[0][held] = HOLD;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &wqe);
            EXPECT(nic_counters(&bench.nic[1])->out_of_sequence >= 1);
            bench_free(&bench);
        }
}

TEST(damaged_packet_is_counted_and_discarded)
{
    for (int f = 0; f < 2; f++)
        for (int hit = 0; hit < PACKETS; hit++) {
            struct bench bench;
            struct test_wqe wqe;
            start(&bench, bench_framings[f], &wqe);
            bench.plan[0][hit] = DAMAGE;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &wqe);
            EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->rx_icrc_encapsulated);
            bench_free(&bench);
        }
}

TEST(frame_with_wrong_link_crc_is_counted_and_discarded)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqe;
        start(&bench, bench_framings[f], &wqe);
        bench.plan[0][3] = CORRUPT;
        bench_run(&bench, 10 * PS_PER_MS);
        expect_whole(&bench, &wqe);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->rx_crc_errors);
        bench_free(&bench);
    }
}

static enum fate lose_all(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    (void)packet;
    return DROP;
}

TEST(silent_peer_fails_the_queue_pair_after_all_retries)
{
    struct bench bench;
    struct test_wqe wqes[3];
    struct qp_config config = bench_qp_config;
    config.retry_count = 2;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.fate = lose_all;
    for (int i = 0; i < 2; i++)
        bench_write(&bench, bench.qp[0], &wqes[i], 0, 0, 5000);
    bench_run(&bench, 3 * ACK_TIMEOUT - PS_PER_US);
    EXPECT_EQUAL(STATUS_PENDING, wqes[0].record.status);
    bench_run(&bench, 10 * PS_PER_US);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[1].record.status);
    EXPECT_EQUAL(3, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(3 * 10, bench_count(&bench, 0, -1));
    bench_write(&bench, bench.qp[0], &wqes[2], 0, 0, 1);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[2].record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->req_cqe_error);
    EXPECT_EQUAL(2, nic_counters(&bench.nic[0])->req_cqe_flush_error);
    EXPECT_EQUAL(0, bench.pool.in_use);
    bench_free(&bench);
}

enum { DATA_PRIORITY = 26 >> 3 };

static void pause_sender(struct bench *bench, bool xoff)
{
    port_pause_peer(&bench->wire[0], DATA_PRIORITY, xoff, bench->clock.now);
}

static void write_while_two_retries_are_left(struct bench *bench, struct test_wqe *wqe,
                                             const char *recovery)
{
    struct qp_config config = bench_qp_config;
    config.retry_count = 2;
    config.recovery = recovery;
    config.window = 64;
    bench_init(bench, FRAMING_ETHERNET, &config);
    bench_write(bench, bench->qp[0], wqe, 0, 0, 5000);
}

TEST(paused_sender_gives_up_after_all_retries)
{
    const char *const recoveries[] = {"go-back-n", "go-back-0", "selective-repeat"};
    for (int i = 0; i < 3; i++) {
        struct bench bench;
        struct test_wqe wqe;
        write_while_two_retries_are_left(&bench, &wqe, recoveries[i]);
        bench.fate = lose_all;
        bench_run(&bench, 5 * PS_PER_US);
        pause_sender(&bench, true);
        bench_run(&bench, 3 * ACK_TIMEOUT - 10 * PS_PER_US);
        EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
        bench_run(&bench, 10 * PS_PER_US);
        EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, wqe.record.status);
        EXPECT_EQUAL(3, nic_counters(&bench.nic[0])->local_ack_timeout_err);
        EXPECT_EQUAL(5, bench_count(&bench, 0, -1));
        bench_free(&bench);
    }
}

TEST(sender_paused_before_retransmission_gives_up)
{
    struct bench bench;
    struct test_wqe wqe;
    write_while_two_retries_are_left(&bench, &wqe, "go-back-n");
    bench.plan[0][0] = DROP;
    bench_run(&bench, PS_PER_US);
    pause_sender(&bench, true);
    bench_run(&bench, 3 * ACK_TIMEOUT);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->packet_seq_err);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, wqe.record.status);
    EXPECT_EQUAL(5, bench_count(&bench, 0, -1));
    bench_free(&bench);
}

TEST(sender_resumed_before_its_last_retry_goes_on)
{
    struct bench bench;
    struct test_wqe wqe;
    write_while_two_retries_are_left(&bench, &wqe, "go-back-n");
    bench.plan[0][4] = DROP;
    bench_run(&bench, 5 * PS_PER_US);
    pause_sender(&bench, true);
    bench_run(&bench, 2 * ACK_TIMEOUT);
    pause_sender(&bench, false);
    bench_run(&bench, ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT_EQUAL(2, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(NEVER, clock_next_deadline(&bench.clock));
    bench_free(&bench);
}

TEST(rate_limited_sender_does_not_give_up)
{
    struct bench bench;
    struct test_wqe wqe;
    write_while_two_retries_are_left(&bench, &wqe, "go-back-n");
    bench.fate = lose_all;
    bench_run(&bench, 5 * PS_PER_US);
    cc_set_gap(&bench.qp[0]->cc, 20 * ACK_TIMEOUT);
    bench_run(&bench, 15 * ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    bench.fate = NULL;
    bench_run(&bench, 6 * 20 * ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    bench_free(&bench);
}

TEST(progress_resets_the_retry_count)
{
    struct bench bench;
    struct test_wqe wqes[4];
    struct qp_config config = bench_qp_config;
    config.retry_count = 1;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    /* Each message is one packet, which is lost the first time. */
    for (int i = 0; i < 4; i++) {
        bench.plan[0][2 * i] = DROP;
        bench_write(&bench, bench.qp[0], &wqes[i], 0, 0, 100);
        bench_run(&bench, 2 * ACK_TIMEOUT);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[i].record.status);
    }
    bench_free(&bench);
}

TEST(zero_timeout_disables_retransmission)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.timeout = 0;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.plan[0][0] = DROP;
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 100);
    bench_run(&bench, 100 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
    EXPECT_EQUAL(1, bench_count(&bench, 0, -1));
    bench_free(&bench);
}

TEST(send_without_a_receive_retries_after_the_rnr_timer)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqe;
        struct receive receive;
        struct qp_config config = bench_qp_config;
        config.min_rnr_timer = 9; /* 240 us */
        bench_init(&bench, bench_framings[f], &config);
        bench_send(&bench, bench.qp[0], &wqe, 5, BYTES);
        bench_run(&bench, 200 * PS_PER_US);
        EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
        EXPECT_EQUAL(1, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
        EXPECT_EQUAL(AETH_RNR_NAK | 9, bench_find(&bench, 1, -1, 0)->aeth.syndrome);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->out_of_buffer);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->rnr_nak_retry_err);
        bench_receive(&bench, bench.qp[1], &receive, 11, BYTES);
        bench_run(&bench, 100 * PS_PER_US);
        expect_whole(&bench, &wqe);
        const struct packet_record *again = bench_find(&bench, 0, OPCODE_SEND_FIRST, 1);
        picoseconds gap = again->at - bench_find(&bench, 1, -1, 0)->at;
        EXPECT(gap > 240 * PS_PER_US && gap < 242 * PS_PER_US);
        bench_free(&bench);
    }
}

TEST(receiver_never_ready_fails_the_queue_pair)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.rnr_retry = 3;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_send(&bench, bench.qp[0], &wqe, 0, 100);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_RNR_RETRY_EXC_ERR, wqe.record.status);
    EXPECT_EQUAL(4, nic_counters(&bench.nic[0])->rnr_nak_retry_err);
    bench_free(&bench);
}

static enum fate random_fate(struct bench *bench, const struct packet_record *packet)
{
    (void)packet;
    static const enum fate fates[] = {DROP, TWICE, HOLD, DAMAGE};
    uint32_t draw = rng_u32(&bench->rng) % 100;
    return draw < 8 ? fates[draw % 4] : PASS;
}

TEST(all_messages_arrive_over_a_lossy_wire_both_ways)
{
    enum { MESSAGES = 20, LENGTH = 20011 };
    for (int f = 0; f < 2; f++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct bench bench;
            struct test_wqe wqes[2][MESSAGES];
            bench_init(&bench, bench_framings[f], &bench_qp_config);
            bench.rng.state = seed;
            bench.fate = random_fate;
            for (uint32_t i = 0; i < MESSAGES; i++)
                for (int side = 0; side < 2; side++)
                    bench_write(&bench, bench.qp[side], &wqes[side][i], i * LENGTH, i * LENGTH,
                                LENGTH);
            bench_run(&bench, PS_PER_S);
            for (int side = 0; side < 2; side++) {
                for (uint32_t i = 0; i < MESSAGES; i++) {
                    EXPECT_EQUAL(STATUS_SUCCESS, wqes[side][i].record.status);
                    EXPECT_EQUAL(LENGTH, wqes[side][i].record.delivered_bytes);
                }
                EXPECT(bench_arrived(&bench, !side, 0, 0, MESSAGES * LENGTH));
                EXPECT(bench_untouched(&bench, !side, 0, MESSAGES * LENGTH));
            }
            bench_free(&bench);
        }
}

MAIN(RUN(packet_lost_at_any_position_is_retransmitted),
     RUN(lost_ack_costs_a_timeout_and_duplicates), RUN(responder_sends_one_nak_per_gap),
     RUN(timer_recovers_from_a_lost_nak), RUN(repeated_packet_is_executed_once),
     RUN(reordered_packets_are_requested_again), RUN(damaged_packet_is_counted_and_discarded),
     RUN(frame_with_wrong_link_crc_is_counted_and_discarded),
     RUN(silent_peer_fails_the_queue_pair_after_all_retries),
     RUN(paused_sender_gives_up_after_all_retries),
     RUN(sender_paused_before_retransmission_gives_up),
     RUN(sender_resumed_before_its_last_retry_goes_on), RUN(rate_limited_sender_does_not_give_up),
     RUN(progress_resets_the_retry_count), RUN(zero_timeout_disables_retransmission),
     RUN(send_without_a_receive_retries_after_the_rnr_timer),
     RUN(receiver_never_ready_fails_the_queue_pair),
     RUN(all_messages_arrive_over_a_lossy_wire_both_ways))
