/* Packets that are lost, repeated, out of order or damaged on the way. */
#include "testbench.h"

enum { PACKETS = 12, BYTES = PACKETS * 1024 - 100 };

#define ACK_TIMEOUT (INT64_C(4096) * PS_PER_NS << 8)

static void start(struct bench *bench, enum framing framing, struct letter *letter)
{
    bench_init(bench, framing, &bench_qp_config);
    bench_write(bench, bench->qp[0], letter, 5, 11, BYTES);
}

static void expect_whole(struct bench *bench, const struct letter *letter)
{
    EXPECT_EQUAL(STATUS_SUCCESS, letter->record.status);
    EXPECT(bench_arrived(bench, 1, 5, 11, BYTES));
    EXPECT(bench_untouched(bench, 1, 11, BYTES));
    EXPECT_EQUAL(BYTES, letter->record.delivered_bytes);
    EXPECT_EQUAL(0, bench->pool.in_use);
}

TEST(a_packet_lost_at_any_place_is_sent_again)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t lost = 0; lost < PACKETS; lost++) {
            struct bench bench;
            struct letter letter;
            start(&bench, bench_framings[f], &letter);
            bench.plan[0][lost] = DROP;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &letter);
            /* Nothing follows the last packet, so only the timer can miss it. */
            bool last = lost == PACKETS - 1;
            EXPECT_EQUAL(last, nic_counters(&bench.nic[0])->local_ack_timeout_err);
            EXPECT_EQUAL(!last, nic_counters(&bench.nic[0])->packet_seq_err);
            /* A NAK says what was lost; the timer only that nothing is acknowledged. */
            uint32_t again = last ? PACKETS : PACKETS - lost;
            EXPECT_EQUAL(again, letter.record.retransmitted_packets);
            EXPECT_EQUAL(again, nic_counters(&bench.nic[0])->retransmitted_packets);
            bench_free(&bench);
        }
}

TEST(a_lost_ack_costs_a_timeout_and_duplicates)
{
    struct bench bench;
    struct letter letter;
    start(&bench, FRAMING_ETHERNET, &letter);
    bench.plan[1][0] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &letter);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    /* The first duplicate's ACK already acknowledges all; the rest was on its way. */
    EXPECT(nic_counters(&bench.nic[1])->duplicate_request >= 1);
    EXPECT_EQUAL(1012 - 1, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 1)->bth.psn);
    bench_free(&bench);
}

TEST(one_nak_is_sent_until_the_expected_packet_arrives)
{
    struct bench bench;
    struct letter letter;
    start(&bench, FRAMING_ETHERNET, &letter);
    bench.plan[0][2] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &letter);
    EXPECT_EQUAL(PACKETS - 3, nic_counters(&bench.nic[1])->out_of_sequence);
    EXPECT_EQUAL(2, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
    const struct sight *nak = bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0);
    EXPECT_EQUAL(AETH_NAK_PSN_SEQUENCE_ERROR, nak->aeth.syndrome);
    EXPECT_EQUAL(1002, nak->bth.psn);
    bench_free(&bench);
}

TEST(a_lost_nak_is_repaired_by_the_timer)
{
    struct bench bench;
    struct letter letter;
    start(&bench, FRAMING_ETHERNET, &letter);
    bench.plan[0][2] = DROP;
    bench.plan[1][0] = DROP;
    bench_run(&bench, 10 * PS_PER_MS);
    expect_whole(&bench, &letter);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(0, nic_counters(&bench.nic[0])->packet_seq_err);
    bench_free(&bench);
}

TEST(repeated_packets_are_executed_once)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct letter letter;
        start(&bench, bench_framings[f], &letter);
        for (int i = 0; i < PACKETS; i++)
            bench.plan[0][i] = bench.plan[1][i] = TWICE;
        bench_run(&bench, 10 * PS_PER_MS);
        expect_whole(&bench, &letter);
        EXPECT_EQUAL(PACKETS, nic_counters(&bench.nic[1])->duplicate_request);
        EXPECT_EQUAL(0, letter.record.retransmitted_packets);
        bench_free(&bench);
    }
}

TEST(packets_out_of_order_are_asked_for_again)
{
    for (int f = 0; f < 2; f++)
        for (int held = 0; held < PACKETS - 1; held++) {
            struct bench bench;
            struct letter letter;
            start(&bench, bench_framings[f], &letter);
            bench.plan[0][held] = HOLD;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &letter);
            EXPECT(nic_counters(&bench.nic[1])->out_of_sequence >= 1);
            bench_free(&bench);
        }
}

TEST(a_damaged_packet_is_counted_and_changes_nothing)
{
    for (int f = 0; f < 2; f++)
        for (int hit = 0; hit < PACKETS; hit++) {
            struct bench bench;
            struct letter letter;
            start(&bench, bench_framings[f], &letter);
            bench.plan[0][hit] = DAMAGE;
            bench_run(&bench, 10 * PS_PER_MS);
            expect_whole(&bench, &letter);
            EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->rx_icrc_encapsulated);
            bench_free(&bench);
        }
}

TEST(a_frame_with_a_wrong_link_crc_is_counted_and_changes_nothing)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct letter letter;
        start(&bench, bench_framings[f], &letter);
        bench.plan[0][3] = CORRUPT;
        bench_run(&bench, 10 * PS_PER_MS);
        expect_whole(&bench, &letter);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->rx_crc_errors);
        bench_free(&bench);
    }
}

static enum fate lose_all(struct bench *bench, const struct sight *sight)
{
    (void)bench;
    (void)sight;
    return DROP;
}

TEST(a_silent_peer_ends_the_queue_pair_after_all_retries)
{
    struct bench bench;
    struct letter letters[3];
    struct qp_config config = bench_qp_config;
    config.retry_count = 2;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.fate = lose_all;
    for (int i = 0; i < 2; i++)
        bench_write(&bench, bench.qp[0], &letters[i], 0, 0, 5000);
    bench_run(&bench, 3 * ACK_TIMEOUT - PS_PER_US);
    EXPECT_EQUAL(STATUS_PENDING, letters[0].record.status);
    bench_run(&bench, 10 * PS_PER_US);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, letters[0].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, letters[1].record.status);
    EXPECT_EQUAL(3, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(3 * 10, bench_count(&bench, 0, -1));
    bench_write(&bench, bench.qp[0], &letters[2], 0, 0, 1);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, letters[2].record.status);
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

static void write_while_two_retries_are_left(struct bench *bench, struct letter *letter,
                                             const char *recovery)
{
    struct qp_config config = bench_qp_config;
    config.retry_count = 2;
    config.recovery = recovery;
    config.window = 64;
    bench_init(bench, FRAMING_ETHERNET, &config);
    bench_write(bench, bench->qp[0], letter, 0, 0, 5000);
}

TEST(a_sender_that_is_paused_gives_up_after_all_retries)
{
    const char *const recoveries[] = {"go-back-n", "go-back-0", "selective-repeat"};
    for (int i = 0; i < 3; i++) {
        struct bench bench;
        struct letter letter;
        write_while_two_retries_are_left(&bench, &letter, recoveries[i]);
        bench.fate = lose_all;
        bench_run(&bench, 5 * PS_PER_US);
        pause_sender(&bench, true);
        bench_run(&bench, 3 * ACK_TIMEOUT - 10 * PS_PER_US);
        EXPECT_EQUAL(STATUS_PENDING, letter.record.status);
        bench_run(&bench, 10 * PS_PER_US);
        EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, letter.record.status);
        EXPECT_EQUAL(3, nic_counters(&bench.nic[0])->local_ack_timeout_err);
        EXPECT_EQUAL(5, bench_count(&bench, 0, -1));
        bench_free(&bench);
    }
}

TEST(a_sender_that_is_paused_before_it_repeats_what_a_nak_asks_for_gives_up_too)
{
    struct bench bench;
    struct letter letter;
    write_while_two_retries_are_left(&bench, &letter, "go-back-n");
    bench.plan[0][0] = DROP;
    bench_run(&bench, PS_PER_US);
    pause_sender(&bench, true);
    bench_run(&bench, 3 * ACK_TIMEOUT);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->packet_seq_err);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, letter.record.status);
    EXPECT_EQUAL(5, bench_count(&bench, 0, -1));
    bench_free(&bench);
}

TEST(a_sender_that_is_let_go_before_it_gives_up_goes_on)
{
    struct bench bench;
    struct letter letter;
    write_while_two_retries_are_left(&bench, &letter, "go-back-n");
    bench.plan[0][4] = DROP;
    bench_run(&bench, 5 * PS_PER_US);
    pause_sender(&bench, true);
    bench_run(&bench, 2 * ACK_TIMEOUT);
    pause_sender(&bench, false);
    bench_run(&bench, ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_SUCCESS, letter.record.status);
    EXPECT_EQUAL(2, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    EXPECT_EQUAL(NEVER, clock_next_deadline(&bench.clock));
    bench_free(&bench);
}

TEST(a_sender_that_waits_for_its_own_rate_does_not_give_up)
{
    struct bench bench;
    struct letter letter;
    write_while_two_retries_are_left(&bench, &letter, "go-back-n");
    bench.fate = lose_all;
    bench_run(&bench, 5 * PS_PER_US);
    cc_set_gap(&bench.qp[0]->cc, 20 * ACK_TIMEOUT);
    bench_run(&bench, 15 * ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_PENDING, letter.record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    bench.fate = NULL;
    bench_run(&bench, 6 * 20 * ACK_TIMEOUT);
    EXPECT_EQUAL(STATUS_SUCCESS, letter.record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    bench_free(&bench);
}

TEST(progress_gives_back_all_retries)
{
    struct bench bench;
    struct letter letters[4];
    struct qp_config config = bench_qp_config;
    config.retry_count = 1;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    /* Each message is one packet, lost the first time. */
    for (int i = 0; i < 4; i++) {
        bench.plan[0][2 * i] = DROP;
        bench_write(&bench, bench.qp[0], &letters[i], 0, 0, 100);
        bench_run(&bench, 2 * ACK_TIMEOUT);
        EXPECT_EQUAL(STATUS_SUCCESS, letters[i].record.status);
    }
    bench_free(&bench);
}

TEST(without_a_timeout_nothing_is_ever_sent_again)
{
    struct bench bench;
    struct letter letter;
    struct qp_config config = bench_qp_config;
    config.timeout = 0;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.plan[0][0] = DROP;
    bench_write(&bench, bench.qp[0], &letter, 0, 0, 100);
    bench_run(&bench, 100 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_PENDING, letter.record.status);
    EXPECT_EQUAL(1, bench_count(&bench, 0, -1));
    bench_free(&bench);
}

TEST(a_send_that_finds_no_receive_is_told_when_to_come_again)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct letter letter;
        struct receive receive;
        struct qp_config config = bench_qp_config;
        config.min_rnr_timer = 9; /* 240 us */
        bench_init(&bench, bench_framings[f], &config);
        bench_send(&bench, bench.qp[0], &letter, 5, BYTES);
        bench_run(&bench, 200 * PS_PER_US);
        EXPECT_EQUAL(STATUS_PENDING, letter.record.status);
        EXPECT_EQUAL(1, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
        EXPECT_EQUAL(AETH_RNR_NAK | 9, bench_find(&bench, 1, -1, 0)->aeth.syndrome);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->out_of_buffer);
        EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->rnr_nak_retry_err);
        bench_receive(&bench, bench.qp[1], &receive, 11, BYTES);
        bench_run(&bench, 100 * PS_PER_US);
        expect_whole(&bench, &letter);
        const struct sight *again = bench_find(&bench, 0, OPCODE_SEND_FIRST, 1);
        picoseconds gap = again->at - bench_find(&bench, 1, -1, 0)->at;
        EXPECT(gap > 240 * PS_PER_US && gap < 242 * PS_PER_US);
        bench_free(&bench);
    }
}

TEST(a_receiver_that_is_never_ready_ends_the_queue_pair)
{
    struct bench bench;
    struct letter letter;
    struct qp_config config = bench_qp_config;
    config.rnr_retry = 3;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_send(&bench, bench.qp[0], &letter, 0, 100);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_RNR_RETRY_EXC_ERR, letter.record.status);
    EXPECT_EQUAL(4, nic_counters(&bench.nic[0])->rnr_nak_retry_err);
    bench_free(&bench);
}

static enum fate random_fate(struct bench *bench, const struct sight *sight)
{
    (void)sight;
    static const enum fate fates[] = {DROP, TWICE, HOLD, DAMAGE};
    uint32_t draw = rng_u32(&bench->rng) % 100;
    return draw < 8 ? fates[draw % 4] : PASS;
}

TEST(everything_arrives_over_a_bad_wire_in_both_directions)
{
    enum { MESSAGES = 20, LENGTH = 20011 };
    for (int f = 0; f < 2; f++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct bench bench;
            struct letter letters[2][MESSAGES];
            bench_init(&bench, bench_framings[f], &bench_qp_config);
            bench.rng.state = seed;
            bench.fate = random_fate;
            for (uint32_t i = 0; i < MESSAGES; i++)
                for (int side = 0; side < 2; side++)
                    bench_write(&bench, bench.qp[side], &letters[side][i], i * LENGTH, i * LENGTH,
                                LENGTH);
            bench_run(&bench, PS_PER_S);
            for (int side = 0; side < 2; side++) {
                for (uint32_t i = 0; i < MESSAGES; i++) {
                    EXPECT_EQUAL(STATUS_SUCCESS, letters[side][i].record.status);
                    EXPECT_EQUAL(LENGTH, letters[side][i].record.delivered_bytes);
                }
                EXPECT(bench_arrived(&bench, !side, 0, 0, MESSAGES * LENGTH));
                EXPECT(bench_untouched(&bench, !side, 0, MESSAGES * LENGTH));
            }
            bench_free(&bench);
        }
}

MAIN(RUN(a_packet_lost_at_any_place_is_sent_again), RUN(a_lost_ack_costs_a_timeout_and_duplicates),
     RUN(one_nak_is_sent_until_the_expected_packet_arrives),
     RUN(a_lost_nak_is_repaired_by_the_timer), RUN(repeated_packets_are_executed_once),
     RUN(packets_out_of_order_are_asked_for_again),
     RUN(a_damaged_packet_is_counted_and_changes_nothing),
     RUN(a_frame_with_a_wrong_link_crc_is_counted_and_changes_nothing),
     RUN(a_silent_peer_ends_the_queue_pair_after_all_retries),
     RUN(a_sender_that_is_paused_gives_up_after_all_retries),
     RUN(a_sender_that_is_paused_before_it_repeats_what_a_nak_asks_for_gives_up_too),
     RUN(a_sender_that_is_let_go_before_it_gives_up_goes_on),
     RUN(a_sender_that_waits_for_its_own_rate_does_not_give_up),
     RUN(progress_gives_back_all_retries), RUN(without_a_timeout_nothing_is_ever_sent_again),
     RUN(a_send_that_finds_no_receive_is_told_when_to_come_again),
     RUN(a_receiver_that_is_never_ready_ends_the_queue_pair),
     RUN(everything_arrives_over_a_bad_wire_in_both_directions))
