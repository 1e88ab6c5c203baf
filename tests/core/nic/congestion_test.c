/* Congestion notification and reaction: CE marks, CNPs, pacing. Another test compares the
 * recurrence of DCQCN with a second implementation. */
#include "link/pauses.h"
#include "testbench.h"

static struct qp_config dcqcn_config(void)
{
    struct qp_config config = bench_qp_config;
    config.cc = bench_dcqcn;
    config.cnp.becn = BECN_IN_CNP;
    return config;
}

static bool is_data(const struct packet_record *packet)
{
    return packet->bth.opcode <= OPCODE_WRITE_ONLY;
}

static enum fate mark_data(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return is_data(packet) ? MARK : PASS;
}

static enum fate mark_first(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return is_data(packet) && packet->bth.psn == 1000 ? MARK : PASS;
}

static enum fate mark_first_two(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return is_data(packet) && packet->bth.psn <= 1001 ? MARK : PASS;
}

/* Writes a message whose packets `fate` marks or passes, and runs until `until`. */
static void write_marked(struct bench *bench, struct test_wqe *wqe, const struct qp_config *config,
                         enum fate (*fate)(struct bench *, const struct packet_record *),
                         uint32_t length, picoseconds until)
{
    bench_init(bench, FRAMING_ETHERNET, config);
    bench->fate = fate;
    bench_write(bench, bench->qp[0], wqe, 0, 0, length);
    bench_run(bench, until);
}

/* Marks two packets and sends nothing more for several intervals. Returns the number of CNPs and,
 * if there are two, the time between them. */
static uint32_t cnps_of_two_marks(const struct cnp_config *cnp, picoseconds *between)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    config.cnp = *cnp;
    write_marked(&bench, &wqe, &config, mark_first_two, 8192, PS_PER_MS);
    uint32_t cnps = bench_count(&bench, 1, OPCODE_CNP);
    *between = cnps < 2 ? 0
                        : bench_find(&bench, 1, OPCODE_CNP, 1)->at -
                              bench_find(&bench, 1, OPCODE_CNP, 0)->at;
    bench_free(&bench);
    return cnps;
}

TEST(mark_within_the_interval_makes_a_cnp_at_its_end)
{
    struct cnp_config cnp = {
        .becn = BECN_IN_CNP, .keeps_marks = true, .interval_ps = 50 * PS_PER_US};
    picoseconds between;
    EXPECT_EQUAL(2, cnps_of_two_marks(&cnp, &between));
    EXPECT_EQUAL(cnp.interval_ps, between);
}

TEST(mark_within_the_interval_can_be_ignored)
{
    struct cnp_config cnp = {.becn = BECN_IN_CNP, .interval_ps = 50 * PS_PER_US};
    picoseconds between;
    EXPECT_EQUAL(1, cnps_of_two_marks(&cnp, &between));
}

TEST(cnp_leaves_after_its_delay)
{
    picoseconds arrived[2];
    for (int late = 0; late < 2; late++) {
        struct bench bench;
        struct test_wqe wqe;
        struct qp_config config = dcqcn_config();
        config.cnp.delay_ps = late * 7 * PS_PER_US;
        write_marked(&bench, &wqe, &config, mark_first, 1024, PS_PER_MS);
        EXPECT_EQUAL(1, bench_count(&bench, 1, OPCODE_CNP));
        arrived[late] = bench_find(&bench, 1, OPCODE_CNP, 0)->at;
        bench_free(&bench);
    }
    /* Without a delay the CNP precedes the ACK; with a delay it finds the line idle. */
    EXPECT_EQUAL(7 * PS_PER_US, arrived[1] - arrived[0]);
}

TEST(queue_pairs_can_share_a_cnp_interval)
{
    const uint32_t expected[] = {[CNP_PER_QP] = 2, [CNP_PER_ADDRESS] = 1, [CNP_PER_PORT] = 1};
    for (int per = CNP_PER_QP; per <= CNP_PER_PORT; per++) {
        struct bench bench;
        struct test_wqe wqes[2];
        struct qp_config config = dcqcn_config();
        config.cnp.keeps_marks = false;
        config.cnp.per = per;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        struct qp *second = bench_add_pair(&bench, &config);
        bench.fate = mark_data;
        bench_write(&bench, bench.qp[0], &wqes[0], 0, 0, 1024);
        bench_write(&bench, second, &wqes[1], 0, 4096, 1024);
        bench_run(&bench, PS_PER_MS);
        EXPECT_EQUAL(expected[per], bench_count(&bench, 1, OPCODE_CNP));
        bench_free(&bench);
    }
}

TEST(receiver_sends_one_cnp_per_interval_at_most)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    write_marked(&bench, &wqe, &config, mark_data, MEMORY, 50 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT_EQUAL(0, wqe.record.retransmitted_packets);
    const struct nic_counters *sender = nic_counters(&bench.nic[0]);
    const struct nic_counters *receiver = nic_counters(&bench.nic[1]);
    EXPECT_EQUAL(MEMORY / 1024, receiver->np_ecn_marked_roce_packets);
    EXPECT_EQUAL(receiver->np_cnp_sent, sender->rp_cnp_handled);
    EXPECT_EQUAL(receiver->np_cnp_sent, bench_count(&bench, 1, OPCODE_CNP));
    EXPECT(receiver->np_cnp_sent > 3);
    for (uint32_t i = 1; i < receiver->np_cnp_sent; i++) {
        picoseconds gap =
            bench_find(&bench, 1, OPCODE_CNP, i)->at - bench_find(&bench, 1, OPCODE_CNP, i - 1)->at;
        /* An ACK on the line may delay the earlier of the two CNPs. */
        EXPECT(gap > config.cnp.interval_ps - 20 * PS_PER_NS);
    }
    bench_free(&bench);
}

TEST(cnp_goes_to_the_sender_on_its_own_priority)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    write_marked(&bench, &wqe, &config, mark_first, 100000, PS_PER_MS);
    EXPECT_EQUAL(1, bench_count(&bench, 1, OPCODE_CNP));
    const struct packet_record *cnp = bench_find(&bench, 1, OPCODE_CNP, 0);
    EXPECT_EQUAL(48 << 2, cnp->tos);
    EXPECT_EQUAL(6, cnp->tc);
    EXPECT_EQUAL(BTH_BYTES + 16, cnp->body_bytes);
    EXPECT_EQUAL(bench.qp[0]->qpn, cnp->bth.dest_qp);
    EXPECT(cnp->bth.becn && !cnp->bth.mig_req && !cnp->bth.ack_req && cnp->bth.psn == 0);
    EXPECT_EQUAL(26 << 2 | 2, bench_find(&bench, 0, -1, 0)->tos);
    EXPECT_EQUAL(26 << 2, bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0)->tos);
    bench_free(&bench);
}

TEST(sender_halves_its_rate_after_a_cnp)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    write_marked(&bench, &wqe, &config, mark_first, MEMORY, 40 * PS_PER_US);
    EXPECT_EQUAL(LINE_RATE / 2, qp_rate_bps(bench.qp[0]));
    picoseconds cnp = bench_find(&bench, 1, OPCODE_CNP, 0)->at;
    picoseconds gap = serialisation(1024 + 82, LINE_RATE / 2);
    uint32_t paced = 0;
    for (uint32_t i = 1; i < bench_count(&bench, 0, -1); i++) {
        const struct packet_record *before = bench_find(&bench, 0, -1, i - 1);
        if (before->at < cnp + 2 * PS_PER_US)
            continue;
        EXPECT_EQUAL(gap, bench_find(&bench, 0, -1, i)->at - before->at);
        paced++;
    }
    EXPECT(paced > 100);
    bench_free(&bench);
}

TEST(limited_sender_recovers_to_line_rate)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    write_marked(&bench, &wqe, &config, mark_first, MEMORY, 10 * PS_PER_MS);
    EXPECT_EQUAL(LINE_RATE, qp_rate_bps(bench.qp[0]));
    EXPECT_EQUAL(0, bench.qp[0]->cc.rate_bps);
    EXPECT_EQUAL(NEVER, clock_next_deadline(&bench.clock));
    bench_free(&bench);
}

enum { RETH = 16, OF_WRITE = 1024 + 82 }; /* bytes on the wire; the first packet also has a RETH */

/* Time between the ends of the first and second packet. */
static picoseconds first_pause(uint64_t rate_bps)
{
    return serialisation(OF_WRITE + RETH, rate_bps) - serialisation(RETH, LINE_RATE);
}

static uint32_t notifications;

static void count_notification(struct cc *cc)
{
    (void)cc;
    notifications++;
}

TEST(unchanged_rate_makes_no_notification)
{
    struct cc cc = {.changed = count_notification};
    notifications = 0;
    for (int i = 0; i < 3; i++) {
        cc_set_gap(&cc, 5 * PS_PER_US);
        cc_set_rate(&cc, LINE_RATE);
    }
    EXPECT_EQUAL(2, notifications);
}

TEST(rate_increase_shortens_the_current_gap)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct cc *cc = &bench.qp[0]->cc;
    cc_set_rate(cc, 1000000); /* 9 ms per packet */
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 3 * 1024);
    bench_run(&bench, 20 * PS_PER_US);
    EXPECT_EQUAL(1, bench_count(&bench, 0, -1));
    cc_set_rate(cc, 200000000);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    picoseconds first = bench_find(&bench, 0, -1, 0)->at, second = bench_find(&bench, 0, -1, 1)->at;
    EXPECT_EQUAL(first_pause(200000000), second - first);
    EXPECT_EQUAL(serialisation(OF_WRITE, 200000000), bench_find(&bench, 0, -1, 2)->at - second);
    bench_free(&bench);
}

TEST(rate_decrease_lengthens_the_current_gap)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct cc *cc = &bench.qp[0]->cc;
    cc_set_rate(cc, 200000000);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 2 * 1024);
    bench_run(&bench, 20 * PS_PER_US);
    cc_set_rate(cc, 100000000);
    bench_run(&bench, PS_PER_MS);
    picoseconds first = bench_find(&bench, 0, -1, 0)->at;
    EXPECT_EQUAL(first_pause(100000000), bench_find(&bench, 0, -1, 1)->at - first);
    bench_free(&bench);
}

TEST(slow_sender_does_not_time_out_between_acks)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.timeout = 1; /* 8.2 us */
    bench_init(&bench, FRAMING_ETHERNET, &config);
    /* One packet per microsecond and one ACK per sixteen packets: when an ACK arrives, packets that
     * request none are already in flight. */
    bench.qp[0]->cc.rate_bps = 1106 * 8 * UINT64_C(1000000);
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 400 * 1024);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT_EQUAL(0, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    bench_free(&bench);
}

TEST(marks_are_only_counted_without_congestion_control)
{
    struct bench bench;
    struct test_wqe wqe;
    write_marked(&bench, &wqe, &bench_qp_config, mark_data, 100 * 1024, PS_PER_MS);
    EXPECT_EQUAL(100, nic_counters(&bench.nic[1])->np_ecn_marked_roce_packets);
    EXPECT_EQUAL(0, bench_count(&bench, 1, OPCODE_CNP));

    uint8_t body[BTH_BYTES + CNP_PAYLOAD_BYTES] = {0};
    struct bth bth = {
        .opcode = OPCODE_CNP, .pkey = PKEY_DEFAULT, .becn = true, .dest_qp = bench.qp[0]->qpn};
    bth_write(body, &bth);
    bench_inject(&bench, 0, body, sizeof body);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->rp_cnp_ignored);
    EXPECT_EQUAL(LINE_RATE, qp_rate_bps(bench.qp[0]));
    bench_free(&bench);
}

TEST(cnp_passes_while_the_data_priority_is_paused)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.fate = mark_data;
    port_pause_peer(&bench.wire[1], 26 >> 3, true, 0); /* the receiver cannot send ACKs */
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 20 * 1024);
    bench_run(&bench, 30 * PS_PER_US);
    EXPECT_EQUAL(1, bench_count(&bench, 1, OPCODE_CNP));
    EXPECT_EQUAL(0, bench_count(&bench, 1, OPCODE_ACKNOWLEDGE));
    bench_free(&bench);
}

static enum fate mark_sender(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return packet->from == 0 ? MARK : PASS;
}

TEST(ack_carries_becn_for_marks_since_the_last_ack)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.cnp.becn = BECN_IN_ACK;
    config.ack_every = 4;
    write_marked(&bench, &wqe, &config, mark_sender, 20 * 1024, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    uint32_t acks = bench_count(&bench, 1, OPCODE_ACKNOWLEDGE);
    EXPECT(acks >= 5);
    for (uint32_t i = 0; i < acks; i++)
        EXPECT(bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, i)->bth.becn);
    EXPECT_EQUAL(acks, nic_counters(&bench.nic[1])->np_becn_sent);
    EXPECT_EQUAL(acks, nic_counters(&bench.nic[0])->rp_becn_received);
    EXPECT_EQUAL(0, bench_count(&bench, 1, OPCODE_CNP));

    struct test_wqe unmarked;
    bench.fate = NULL;
    bench_write(&bench, bench.qp[0], &unmarked, 0, 0, 1024);
    bench_run(&bench, PS_PER_MS);
    EXPECT(!bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, acks)->bth.becn);
    bench_free(&bench);
}

TEST(cnp_reports_marks_when_the_transport_has_no_acks)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = bench_qp_config;
    config.cnp = (struct cnp_config){.becn = BECN_IN_ACK};
    config.transport = TRANSPORT_UC;
    write_marked(&bench, &wqe, &config, mark_sender, 3 * 1024, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT_EQUAL(3, bench_count(&bench, 1, OPCODE_CNP));
    EXPECT_EQUAL(0, nic_counters(&bench.nic[1])->np_becn_sent);
    bench_free(&bench);
}

static enum fate mark_responses(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return packet->from == 1 && packet->bth.opcode <= OPCODE_READ_RESPONSE_ONLY ? MARK : PASS;
}

TEST(marked_read_responses_cause_cnps)
{
    struct bench bench;
    struct test_wqe wqe;
    struct qp_config config = dcqcn_config();
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.fate = mark_responses;
    bench_post(&bench, bench.qp[0], &wqe, VERB_READ, 0, 0, 8 * 1024);
    bench_run(&bench, 40 * PS_PER_US);
    EXPECT_EQUAL(8, nic_counters(&bench.nic[0])->np_ecn_marked_roce_packets);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->rp_cnp_handled);
    EXPECT_EQUAL(LINE_RATE / 2, qp_rate_bps(bench.qp[1]));
    bench_free(&bench);
}

/* ---- round trips ------------------------------------------------------------------ */

TEST(only_packets_sent_once_give_round_trip_times)
{
    struct arena arena = {0};
    struct send_times send_times;
    EXPECT(send_times_init(&send_times, &arena));
    send_times_note(&send_times, 7, false, 1000);
    send_times_note(&send_times, 8, false, 2000);
    EXPECT_EQUAL(4000, send_times_since(&send_times, 7, 5000));
    EXPECT_EQUAL(3000, send_times_since(&send_times, 8, 5000));
    EXPECT_EQUAL(0, send_times_since(&send_times, 9, 5000));
    send_times_note(&send_times, 7, true, 6000);
    EXPECT_EQUAL(0, send_times_since(&send_times, 7, 9000));
    send_times_note(&send_times, 8 + SEND_TIMES, false, 7000);
    EXPECT_EQUAL(0, send_times_since(&send_times, 8, 9000));
    arena_free(&arena);
}

static picoseconds reported_rtt;

static void record_rtt(struct cc *cc, const struct cc_ack *ack, picoseconds now)
{
    (void)cc;
    (void)now;
    reported_rtt = ack->rtt;
    EXPECT_EQUAL(1, ack->packets);
}

TEST(round_trip_lasts_from_first_byte_to_ack)
{
    static const struct cc_algorithm listener = {.name = "listener", .acknowledged = record_rtt};
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench.qp[0]->cc.algorithm = &listener;
    EXPECT(send_times_init(&bench.qp[0]->requester.send_times, &bench.arena));
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 1024);
    bench_run(&bench, PS_PER_MS);
    /* Two cables each way; each packet is serialised on both. */
    picoseconds wires = serialisation(1024 + 98, LINE_RATE) + serialisation(86, LINE_RATE);
    EXPECT_EQUAL(2 * wires + 4 * CABLE_DELAY, reported_rtt);
    bench_free(&bench);
}

MAIN(RUN(mark_within_the_interval_makes_a_cnp_at_its_end),
     RUN(mark_within_the_interval_can_be_ignored), RUN(cnp_leaves_after_its_delay),
     RUN(queue_pairs_can_share_a_cnp_interval), RUN(receiver_sends_one_cnp_per_interval_at_most),
     RUN(cnp_goes_to_the_sender_on_its_own_priority), RUN(sender_halves_its_rate_after_a_cnp),
     RUN(limited_sender_recovers_to_line_rate), RUN(unchanged_rate_makes_no_notification),
     RUN(rate_increase_shortens_the_current_gap), RUN(rate_decrease_lengthens_the_current_gap),
     RUN(slow_sender_does_not_time_out_between_acks),
     RUN(marks_are_only_counted_without_congestion_control),
     RUN(cnp_passes_while_the_data_priority_is_paused),
     RUN(ack_carries_becn_for_marks_since_the_last_ack),
     RUN(cnp_reports_marks_when_the_transport_has_no_acks), RUN(marked_read_responses_cause_cnps),
     RUN(only_packets_sent_once_give_round_trip_times),
     RUN(round_trip_lasts_from_first_byte_to_ack))
