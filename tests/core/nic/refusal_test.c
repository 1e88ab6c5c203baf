/* Requests that the responder must refuse, by key, bounds, order and length. */
#include <string.h>

#include "link/pauses.h"
#include "testbench.h"

/* Sends a WRITE with the given R_Key and address. */
static void write_to(struct bench *bench, struct test_wqe *wqe, uint32_t rkey, uint64_t va,
                     uint32_t length)
{
    wqe->message = (struct message){.record = &wqe->record,
                                    .verb = VERB_WRITE,
                                    .lkey = bench->source_key[0],
                                    .local_va = FIRST_VA,
                                    .rkey = rkey,
                                    .remote_va = va,
                                    .length = length};
    send_queue_post(bench->qp[0], &wqe->message, bench->clock.now);
}

static void expect_access_refused(enum framing framing, uint32_t key_change, uint64_t va,
                                  uint32_t length)
{
    struct bench bench;
    struct test_wqe wqes[2];
    bench_init(&bench, framing, &bench_qp_config);
    write_to(&bench, &wqes[0], bench.sink_key[1] ^ key_change, va, length);
    write_to(&bench, &wqes[1], bench.sink_key[1], FIRST_VA, 10);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[1].record.status);
    EXPECT(bench_untouched(&bench, 1, 0, 0));
    EXPECT_EQUAL(AETH_NAK_REMOTE_ACCESS_ERROR,
                 bench_find(&bench, 1, OPCODE_ACKNOWLEDGE, 0)->aeth.syndrome);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->req_remote_access_errors);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->resp_remote_access_errors);
    EXPECT_EQUAL(0, bench.pool.in_use);
    bench_free(&bench);
}

TEST(write_needs_a_valid_key_and_stays_in_bounds)
{
    for (int f = 0; f < 2; f++) {
        enum framing framing = bench_framings[f];
        expect_access_refused(framing, 1, FIRST_VA, 5000); /* the region's previous or next key */
        expect_access_refused(framing, 0x700, FIRST_VA, 5000); /* a key of another region */
        expect_access_refused(framing, UINT32_MAX, FIRST_VA, 1);
        expect_access_refused(framing, 0, FIRST_VA - 1, 5000);
        expect_access_refused(framing, 0, FIRST_VA + MEMORY - 4999, 5000);
        expect_access_refused(framing, 0, FIRST_VA + MEMORY, 1);
        expect_access_refused(framing, 0, UINT64_MAX, 2);
        expect_access_refused(framing, 0, 0, MEMORY);
    }
}

TEST(region_without_remote_write_is_not_written)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    write_to(&bench, &wqe, bench.source_key[1], FIRST_VA, 100);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqe.record.status);
    EXPECT(bench_untouched(&bench, 1, 0, 0));
    bench_free(&bench);
}

TEST(last_bytes_of_a_region_can_be_written)
{
    struct bench bench;
    struct test_wqe wqes[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_write(&bench, bench.qp[0], &wqes[0], 0, MEMORY - 5000, 5000);
    write_to(&bench, &wqes[1], 0, 0, 0); /* of zero bytes: needs no key */
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
    EXPECT(bench_untouched(&bench, 1, MEMORY - 5000, 5000));
    bench_free(&bench);
}

TEST(message_from_unregistered_memory_is_not_sent)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_write(&bench, bench.qp[0], &wqe, MEMORY - 10, 0, 11);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqe.record.status);
    EXPECT_EQUAL(0, bench_count(&bench, 0, -1));
    bench_free(&bench);
}

TEST(send_longer_than_its_receive_is_refused)
{
    for (uint32_t length = 100; length < 4000; length += 1900) {
        struct bench bench;
        struct test_wqe wqe;
        struct receive receive;
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        bench_receive(&bench, bench.qp[1], &receive, 64, length - 1);
        bench_send(&bench, bench.qp[0], &wqe, 0, length);
        bench_run(&bench, PS_PER_MS);
        EXPECT_EQUAL(STATUS_REM_INV_REQ_ERR, wqe.record.status);
        EXPECT(bench_untouched(&bench, 1, 64, length - 1));
        bench_free(&bench);
    }
}

TEST(send_can_be_shorter_than_its_receive)
{
    struct bench bench;
    struct test_wqe wqes[2];
    struct receive receives[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_receive(&bench, bench.qp[1], &receives[0], 0, 5000);
    bench_receive(&bench, bench.qp[1], &receives[1], 5000, 5000);
    bench_send(&bench, bench.qp[0], &wqes[0], 0, 3000);
    bench_send(&bench, bench.qp[0], &wqes[1], 3000, 5000);
    bench_run(&bench, PS_PER_MS);
    EXPECT(bench_arrived(&bench, 1, 0, 0, 3000));
    EXPECT(bench_arrived(&bench, 1, 3000, 5000, 5000));
    bench_free(&bench);
}

/* Injects a request that the test builds. */
static void inject_at(struct bench *bench, uint32_t psn, bool ack_req, uint8_t opcode,
                      uint32_t dma_length, uint32_t payload)
{
    uint8_t body[BTH_BYTES + RETH_BYTES + MTU_MAX] = {0};
    struct bth bth = {.opcode = opcode,
                      .mig_req = true,
                      .pad = (uint8_t)(-payload & 3),
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = bench->qp[1]->qpn,
                      .ack_req = ack_req,
                      .psn = psn};
    bth_write(body, &bth);
    uint32_t length = BTH_BYTES;
    if (opcode == OPCODE_WRITE_FIRST || opcode == OPCODE_WRITE_ONLY) {
        struct reth reth = {.va = FIRST_VA, .rkey = bench->sink_key[1], .dma_length = dma_length};
        reth_write(body + length, &reth);
        length += RETH_BYTES;
    }
    bench_inject(bench, 1, body, length + payload + bth.pad);
}

/* Injects a request with the PSN that the responder expects. */
static void inject(struct bench *bench, uint8_t opcode, uint32_t dma_length, uint32_t payload)
{
    inject_at(bench, bench->qp[1]->responder.expected, true, opcode, dma_length, payload);
}

static void expect_invalid(struct bench *bench)
{
    EXPECT_EQUAL(1, nic_counters(&bench->nic[1])->resp_invalid_request);
    EXPECT_EQUAL(QP_ERR, bench->qp[1]->state);
    bench_run(bench, 100 * PS_PER_US);
    uint32_t answers = bench_count(bench, 1, OPCODE_ACKNOWLEDGE);
    EXPECT(answers > 0);
    EXPECT_EQUAL(AETH_NAK_INVALID_REQUEST,
                 bench_find(bench, 1, OPCODE_ACKNOWLEDGE, answers - 1)->aeth.syndrome);
    bench_free(bench);
}

TEST(request_out_of_order_or_of_wrong_length_is_refused)
{
    static const struct {
        uint8_t opcode;
        uint32_t dma_length, payload;
    } wrong[] = {
        {OPCODE_WRITE_MIDDLE, 0, 1024},     {OPCODE_WRITE_LAST, 0, 10},
        {OPCODE_SEND_MIDDLE, 0, 1024},      {OPCODE_SEND_LAST, 0, 10},
        {OPCODE_WRITE_FIRST, 5000, 1020},   {OPCODE_WRITE_FIRST, 1024, 1024},
        {OPCODE_WRITE_FIRST, 500, 1024},    {OPCODE_WRITE_ONLY, 10, 11},
        {OPCODE_WRITE_ONLY, 11, 10},        {OPCODE_WRITE_ONLY, 1025, 1025},
        {OPCODE_WRITE_ONLY, UINT32_MAX, 4}, {0x15 /* reserved */, 0, 0},
        {0x18 /* reserved */, 0, 28},       {0x1C /* FLUSH */, 0, 20},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bench bench;
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        inject(&bench, wrong[i].opcode, wrong[i].dma_length, wrong[i].payload);
        EXPECT(bench_untouched(&bench, 1, 0, 0));
        expect_invalid(&bench);
    }
}

TEST(message_must_continue_with_the_same_operation)
{
    static const struct {
        uint8_t opcode;
        uint32_t payload;
    } wrong[] = {
        {OPCODE_WRITE_FIRST, 1024}, {OPCODE_WRITE_ONLY, 8},  {OPCODE_SEND_ONLY, 8},
        {OPCODE_SEND_MIDDLE, 1024}, {OPCODE_SEND_LAST, 976}, {OPCODE_WRITE_LAST, 975},
        {OPCODE_WRITE_LAST, 977},   {OPCODE_WRITE_LAST, 0},  {OPCODE_WRITE_MIDDLE, 1024},
        {OPCODE_WRITE_LAST, 1028},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bench bench;
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        inject(&bench, OPCODE_WRITE_FIRST, 2000, 1024);
        EXPECT_EQUAL(0, nic_counters(&bench.nic[1])->resp_invalid_request);
        inject(&bench, wrong[i].opcode, 2000, wrong[i].payload);
        EXPECT(bench_untouched(&bench, 1, 0, 1024));
        expect_invalid(&bench);
    }
}

/* Pauses the receiver's acknowledgements, so that a later one can replace an earlier one. */
static void hold_answers(struct bench *bench, bool hold)
{
    port_pause_peer(&bench->wire[1], 26 >> 3, hold, bench->clock.now);
    bench_run(bench, 10 * PS_PER_US);
}

static const struct packet_record *only_answer(struct bench *bench)
{
    hold_answers(bench, false);
    EXPECT_EQUAL(1, bench_count(bench, 1, OPCODE_ACKNOWLEDGE));
    return bench_find(bench, 1, OPCODE_ACKNOWLEDGE, 0);
}

TEST(pending_nak_is_not_replaced_by_a_duplicates_ack)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    hold_answers(&bench, true);
    inject_at(&bench, 1001, true, OPCODE_WRITE_ONLY, 4, 4);
    inject_at(&bench, 999, true, OPCODE_WRITE_ONLY, 4, 4);
    const struct packet_record *answer = only_answer(&bench);
    EXPECT_EQUAL(AETH_NAK_PSN_SEQUENCE_ERROR, answer->aeth.syndrome);
    EXPECT_EQUAL(1000, answer->bth.psn);
    bench_free(&bench);
}

TEST(pending_nak_becomes_an_ack_when_the_gap_closes)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    hold_answers(&bench, true);
    inject_at(&bench, 1001, false, OPCODE_WRITE_ONLY, 4, 4);
    inject_at(&bench, 1000, false, OPCODE_WRITE_ONLY, 4, 4);
    const struct packet_record *answer = only_answer(&bench);
    EXPECT_EQUAL(AETH_ACK, answer->aeth.syndrome);
    EXPECT_EQUAL(1000, answer->bth.psn);
    bench_free(&bench);
}

static uint64_t dropped_at(const struct port *port)
{
    uint64_t packets = 0;
    for (int tc = 0; tc < CLASSES; tc++)
        packets += port->counters->dropped[tc];
    return packets;
}

TEST(packets_for_other_receivers_are_dropped_and_counted)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    uint8_t body[BTH_BYTES];
    const struct nic_counters *counters = nic_counters(&bench.nic[1]);
    struct bth right = {.opcode = OPCODE_SEND_ONLY, .pkey = PKEY_DEFAULT, .dest_qp = 0x11};

    struct bth bth = right;
    bth.dest_qp = 0x77;
    bth_write(body, &bth);
    bench_inject(&bench, 1, body, sizeof body);
    EXPECT_EQUAL(1, counters->rx_unknown_qp);

    bth = right;
    bth.pkey = 0x8001;
    bth_write(body, &bth);
    bench_inject(&bench, 1, body, sizeof body);
    EXPECT_EQUAL(1, counters->rx_pkey_violations);

    bth = right;
    bth.tver = 1;
    bth_write(body, &bth);
    bench_inject(&bench, 1, body, sizeof body);
    EXPECT_EQUAL(1, counters->rx_malformed);

    bth = right;
    bth.opcode = 0x44; /* reliable datagram */
    bth_write(body, &bth);
    bench_inject(&bench, 1, body, sizeof body);
    EXPECT_EQUAL(1, counters->rx_other);

    bench.qp[1]->remote.address++;
    bth_write(body, &right);
    bench_inject(&bench, 1, body, sizeof body);
    EXPECT_EQUAL(2, counters->rx_unknown_qp);
    EXPECT_EQUAL(0, counters->rx_packets);
    EXPECT_EQUAL(1, dropped_at(&bench.nic[1].port)); /* the port drops only the malformed packet and
                                                        delivers the others */
    bench_free(&bench);
}

TEST(acknowledgements_of_unsent_packets_are_ignored)
{
    struct bench bench;
    struct test_wqe wqe;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench.plan[0][0] = DROP;
    bench_write(&bench, bench.qp[0], &wqe, 0, 0, 100);
    bench_run(&bench, 10 * PS_PER_US);
    static const uint8_t syndromes[] = {0x1F, 0x20, 0x3F, 0x40, 0x60, 0x61,
                                        0x63, 0x64, 0x7F, 0x80, 0xFF};
    for (size_t i = 0; i < sizeof syndromes; i++)
        for (uint32_t psn = 999; psn <= 1001; psn++) {
            bool reserved = (syndromes[i] & 0xE0) == 0x40 || syndromes[i] >= 0x64;
            if (psn == 1000 && !reserved)
                continue;
            uint8_t body[BTH_BYTES + AETH_BYTES];
            struct bth bth = {.opcode = OPCODE_ACKNOWLEDGE,
                              .pkey = PKEY_DEFAULT,
                              .dest_qp = bench.qp[0]->qpn,
                              .psn = psn};
            struct aeth aeth = {.syndrome = syndromes[i]};
            bth_write(body, &bth);
            aeth_write(body + BTH_BYTES, &aeth);
            bench_inject(&bench, 0, body, sizeof body);
        }
    EXPECT_EQUAL(STATUS_PENDING, wqe.record.status);
    bench_run(&bench, 2 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    bench_free(&bench);
}

TEST(invalid_config_makes_no_queue_pair)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp_config config = bench_qp_config;
    config.mtu = 1500;
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    config = bench_qp_config;
    config.cc.algorithm = "bbr";
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    config = bench_qp_config;
    config.psn = 1 << 24;
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    config = bench_qp_config;
    config.cc = bench_dcqcn;
    config.cc.parameter_count--;
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    struct parameter parameters[8];
    memcpy(parameters, bench_dcqcn.parameters, sizeof parameters);
    config.cc = bench_dcqcn;
    config.cc.parameters = parameters;
    const double none = 0, half = 0.5;
    parameters[0].reals = &none;
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    parameters[0] = (struct parameter){.name = "gain", .count = 1, .reals = &half};
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    for (int i = 1; i < 8; i++)
        EXPECT(nic_add_qp(&bench.nic[0], &bench_qp_config));
    EXPECT(!nic_add_qp(&bench.nic[0], &bench_qp_config));
    bench_free(&bench);
}

MAIN(RUN(write_needs_a_valid_key_and_stays_in_bounds),
     RUN(region_without_remote_write_is_not_written), RUN(last_bytes_of_a_region_can_be_written),
     RUN(message_from_unregistered_memory_is_not_sent),
     RUN(send_longer_than_its_receive_is_refused), RUN(send_can_be_shorter_than_its_receive),
     RUN(request_out_of_order_or_of_wrong_length_is_refused),
     RUN(message_must_continue_with_the_same_operation),
     RUN(pending_nak_is_not_replaced_by_a_duplicates_ack),
     RUN(pending_nak_becomes_an_ack_when_the_gap_closes),
     RUN(packets_for_other_receivers_are_dropped_and_counted),
     RUN(acknowledgements_of_unsent_packets_are_ignored), RUN(invalid_config_makes_no_queue_pair))
