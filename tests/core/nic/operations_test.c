/* Every operation of every transport: what it delivers, and how it completes. */
#include <string.h>

#include "nic/datagram.h"
#include "nic/delivery.h"
#include "testbench.h"

enum { FROM = 77, TO = 33 };

static void run(struct bench *bench)
{
    bench_run(bench, PS_PER_MS);
}

static void set_sink(struct bench *bench, int side, uint32_t at, uint64_t value)
{
    memcpy(bench->sink[side] + at, &value, sizeof value);
}

static uint64_t get_sink(const struct bench *bench, int side, uint32_t at)
{
    uint64_t value;
    memcpy(&value, bench->sink[side] + at, sizeof value);
    return value;
}

static const uint32_t lengths[] = {0, 1, 1023, 1024, 1025, 5000};

TEST(completion_has_immediate_data_and_byte_count)
{
    static const enum verb verbs[] = {VERB_SEND_IMM, VERB_WRITE_IMM};
    for (int f = 0; f < 2; f++)
        for (int transport = TRANSPORT_RC; transport <= TRANSPORT_UC; transport++)
            for (int v = 0; v < 2; v++)
                for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                    struct bench bench;
                    struct test_wqe wqe = {.message.immediate = 0xCAFEBABE};
                    struct receive receive = {0};
                    struct qp_config config = bench_qp_config;
                    config.transport = transport;
                    bench_init(&bench, bench_framings[f], &config);
                    bench_receive(&bench, bench.qp[1], &receive, TO, lengths[l]);
                    bench_post(&bench, bench.qp[0], &wqe, verbs[v], FROM, TO, lengths[l]);
                    run(&bench);
                    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
                    EXPECT_EQUAL(STATUS_SUCCESS, receive.status);
                    EXPECT(receive.has_immediate && !receive.has_invalidated);
                    EXPECT_EQUAL(0xCAFEBABE, receive.immediate);
                    EXPECT_EQUAL(lengths[l], receive.received_bytes);
                    EXPECT(bench_arrived(&bench, 1, FROM, TO, lengths[l]));
                    EXPECT(bench_untouched(&bench, 1, TO, lengths[l]));
                    bench_free(&bench);
                }
}

TEST(send_can_invalidate_a_key_of_the_receiver)
{
    struct bench bench;
    struct test_wqe wqes[2] = {0};
    struct receive receive;
    bench_init(&bench, FRAMING_INFINIBAND, &bench_qp_config);
    wqes[0].message.immediate = bench.source_key[1];
    bench_receive(&bench, bench.qp[1], &receive, 0, 100);
    bench_post(&bench, bench.qp[0], &wqes[0], VERB_SEND_INV, FROM, TO, 100);
    run(&bench);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
    EXPECT(receive.has_invalidated && receive.immediate == bench.source_key[1]);
    bench_post(&bench, bench.qp[0], &wqes[1], VERB_READ, 0, 0, 100);
    run(&bench);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqes[1].record.status);
    bench_free(&bench);
}

TEST(read_of_any_length_returns_the_remote_bytes)
{
    for (int f = 0; f < 2; f++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            struct bench bench;
            struct test_wqe wqe = {0};
            bench_init(&bench, bench_framings[f], &bench_qp_config);
            bench_post(&bench, bench.qp[0], &wqe, VERB_READ, FROM, TO, lengths[l]);
            run(&bench);
            EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
            EXPECT_EQUAL(lengths[l], wqe.record.delivered_bytes);
            EXPECT_EQUAL(wqe.record.completed_ps, wqe.record.delivered_ps);
            EXPECT(bench_arrived(&bench, 0, FROM, TO, lengths[l]));
            EXPECT(bench_untouched(&bench, 0, TO, lengths[l]));
            EXPECT_EQUAL(1, bench_count(&bench, 0, -1));
            EXPECT_EQUAL(lengths[l] > 1024 ? (lengths[l] - 1) / 1024 + 1 : 1,
                         bench_count(&bench, 1, -1));
            EXPECT_EQUAL(0, bench.pool.in_use);
            bench_free(&bench);
        }
}

TEST(atomic_returns_the_old_value_and_executes_once)
{
    static const struct {
        enum verb verb;
        uint64_t before, compare, swap_add, after;
    } cases[] = {
        {VERB_FETCH_ADD, 40, 0, 2, 42},
        {VERB_FETCH_ADD, UINT64_MAX, 0, 2, 1},
        {VERB_CMP_SWAP, 40, 40, 7, 7},
        {VERB_CMP_SWAP, 40, 41, 7, 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int lost = -1; lost < 2; lost++) { /* no packet, NIC 0's request, NIC 1's response */
            struct bench bench;
            struct test_wqe wqe = {0};
            bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
            if (lost >= 0)
                bench.plan[lost][0] = DROP;
            set_sink(&bench, 1, 64, cases[i].before);
            wqe.message.compare = cases[i].compare;
            wqe.message.swap_add = cases[i].swap_add;
            bench_post(&bench, bench.qp[0], &wqe, cases[i].verb, 64, 0, ATOMIC_BYTES);
            bench_run(&bench, 10 * PS_PER_MS);
            EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
            EXPECT(get_sink(&bench, 0, 0) == cases[i].before);
            EXPECT(get_sink(&bench, 1, 64) == cases[i].after);
            bench_free(&bench);
        }
}

TEST(outstanding_reads_stay_within_max_rd_atomic)
{
    enum { READS = 20 };
    struct bench bench;
    struct test_wqe wqes[READS] = {0};
    struct qp_config config = bench_qp_config;
    config.max_rd_atomic = 2;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    for (uint32_t i = 0; i < READS; i++)
        bench_post(&bench, bench.qp[0], &wqes[i], VERB_READ, i * 3000, i * 3000, 3000);
    run(&bench);
    uint32_t outstanding = 0, most = 0;
    for (uint32_t i = 0; i < bench.packet_count; i++) {
        uint8_t opcode = bench.packets[i].bth.opcode;
        outstanding += opcode == OPCODE_READ_REQUEST;
        outstanding -= opcode == OPCODE_READ_RESPONSE_LAST;
        most = outstanding > most ? outstanding : most;
    }
    EXPECT_EQUAL(2, most);
    EXPECT(bench_arrived(&bench, 0, 0, 0, READS * 3000));
    bench_free(&bench);
}

TEST(max_dest_rd_atomic_can_change_in_sqd)
{
    struct bench bench;
    struct test_wqe wqes[3] = {0};
    struct qp_config config = bench_qp_config;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    config.max_dest_rd_atomic = 2;
    EXPECT(!qp_set_attributes(bench.qp[1], &config));
    EXPECT(qp_modify(bench.qp[1], QP_SQD, 0));
    config.max_dest_rd_atomic = 5; /* the queue pair was created with 4 */
    EXPECT(!qp_set_attributes(bench.qp[1], &config));
    for (uint8_t most = 2; most <= 4; most++) {
        config.max_dest_rd_atomic = most;
        EXPECT(qp_set_attributes(bench.qp[1], &config));
    }
    config.mtu = 256;
    EXPECT(!qp_set_attributes(bench.qp[1], &config));
    config.mtu = bench_qp_config.mtu;
    config.max_dest_rd_atomic = 2;
    EXPECT(qp_set_attributes(bench.qp[1], &config));
    for (uint32_t i = 0; i < 3; i++)
        bench_post(&bench, bench.qp[0], &wqes[i], VERB_READ, 0, 0, 30000);
    run(&bench);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_REM_INV_REQ_ERR, wqes[2].record.status);
    bench_free(&bench);
}

TEST(reads_beyond_max_dest_rd_atomic_are_refused)
{
    struct bench bench;
    struct test_wqe wqes[3] = {0};
    struct qp_config config = bench_qp_config;
    config.max_rd_atomic = 3;
    config.max_dest_rd_atomic = 2;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    for (uint32_t i = 0; i < 3; i++)
        bench_post(&bench, bench.qp[0], &wqes[i], VERB_READ, 0, 0, 30000);
    run(&bench);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->resp_invalid_request);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_REM_INV_REQ_ERR, wqes[2].record.status);
    EXPECT_EQUAL(0, nic_counters(&bench.nic[0])->retransmitted_packets);
    bench_free(&bench);
}

TEST(inline_data_is_not_fetched_from_memory)
{
    enum { LENGTH = 1000, TENTH = 10 };
    for (int inlined = 0; inlined < 2; inlined++) {
        struct bench bench;
        struct test_wqe wqes[2] = {0};
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        bench.nic[0].config.path = (struct host_path){.rate_bps = LINE_RATE / TENTH};
        for (int i = 0; i < 2; i++) {
            wqes[i].message.inlined = inlined ? bench.source[0] + FROM : NULL;
            bench_post(&bench, bench.qp[0], &wqes[i], VERB_WRITE, FROM, TO, LENGTH);
            wqes[i].message.lkey ^= inlined; /* inline data needs no key */
        }
        run(&bench);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
        EXPECT(bench_arrived(&bench, 1, FROM, TO, LENGTH));
        picoseconds gap = wqes[1].record.first_sent_ps - wqes[0].record.first_sent_ps;
        picoseconds on_cable = serialisation(LENGTH, LINE_RATE);
        EXPECT(inlined ? gap >= on_cable && gap < 2 * on_cable : gap >= TENTH * on_cable);
        bench_free(&bench);
    }
}

/* ---- 2 GB ------------------------------------------------------------------------------- */

static void move_two_gigabytes(enum verb verb)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    struct qp_config config = bench_qp_config;
    config.mtu = 4096;
    config.ack_every = 1000;
    bench_init(&bench, FRAMING_INFINIBAND, &config);
    uint32_t key[2];
    for (int i = 0; i < 2; i++) {
        bench.nic[i].config.elides_payload = true;
        key[i] =
            nic_add_region(&bench.nic[i], 0, 0, MESSAGE_MAX,
                           ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ, NULL);
    }
    wqe.message = (struct message){.record = &wqe.record,
                                   .verb = (uint8_t)verb,
                                   .lkey = key[0],
                                   .rkey = key[1],
                                   .length = MESSAGE_MAX};
    send_queue_post(bench.qp[0], &wqe.message, 0);
    delivery_expect(bench.qp[1], &wqe.message);
    bench_run(&bench, 200 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT(wqe.record.delivered_bytes == MESSAGE_MAX);
    EXPECT_EQUAL(0, wqe.record.retransmitted_packets);
    bench_free(&bench);
}

TEST(message_can_have_two_gigabytes)
{
    move_two_gigabytes(VERB_WRITE);
    move_two_gigabytes(VERB_READ);
}

/* ---- unreliable connections --------------------------------------------------------------- */

TEST(unreliable_message_that_loses_a_packet_is_discarded)
{
    for (uint32_t lost = 0; lost < 3; lost++) {
        struct bench bench;
        struct test_wqe wqes[2] = {0};
        struct receive receives[2] = {0};
        struct qp_config config = bench_qp_config;
        config.transport = TRANSPORT_UC;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        bench.plan[0][lost] = DROP;
        for (int i = 0; i < 2; i++)
            bench_receive(&bench, bench.qp[1], &receives[i], 4000u * (uint32_t)i, 3000);
        bench_post(&bench, bench.qp[0], &wqes[0], VERB_SEND, 0, 0, 3000);
        bench_post(&bench, bench.qp[0], &wqes[1], VERB_SEND, 5000, 0, 3000);
        run(&bench);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
        EXPECT_EQUAL(0, bench_count(&bench, 1, -1));
        /* The next message uses the receive that the lost message began to fill. */
        EXPECT_EQUAL(STATUS_SUCCESS, receives[0].status);
        EXPECT_EQUAL(STATUS_PENDING, receives[1].status);
        EXPECT(bench_arrived(&bench, 1, 5000, 0, 3000));
        bench_free(&bench);
    }
}

TEST(unreliable_message_completes_when_it_is_sent)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    struct qp_config config = bench_qp_config;
    config.transport = TRANSPORT_UC;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_post(&bench, bench.qp[0], &wqe, VERB_WRITE, 0, 0, 2048);
    run(&bench);
    EXPECT_EQUAL((1024 + 98) * 80, wqe.record.completed_ps);
    EXPECT(bench_arrived(&bench, 1, 0, 0, 2048));
    bench_free(&bench);
}

TEST(invalidated_key_stops_an_unreliable_sender)
{
    struct bench bench;
    struct test_wqe wqes[3] = {0};
    struct qp_config config = bench_qp_config;
    config.transport = TRANSPORT_UC;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    for (int i = 0; i < 3; i++)
        bench_post(&bench, bench.qp[0], &wqes[i], VERB_WRITE, 0, 0, 1024);
    EXPECT(nic_invalidate(&bench.nic[0], 0, bench.source_key[0]));
    run(&bench);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status); /* already in flight */
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[2].record.status);
    EXPECT_EQUAL(QP_SQE, qp_state(bench.qp[0]));
    EXPECT(qp_modify(bench.qp[0], QP_RTS, bench.clock.now));
    bench_free(&bench);
}

/* ---- datagrams ------------------------------------------------------------------------------ */

struct datagram {
    struct bench bench;
    struct address to;
    struct test_wqe wqe;
    struct receive receive;
};

static void datagram_init(struct datagram *datagram, enum framing framing, uint32_t qkey)
{
    struct qp_config config = bench_qp_config;
    config.transport = TRANSPORT_UD;
    config.qkey = 0x1234;
    *datagram = (struct datagram){.wqe.message = {.to = &datagram->to, .immediate = 99}};
    bench_init(&datagram->bench, framing, &config);
    struct qp *qp = datagram->bench.qp[0];
    address_init(&datagram->to, qp, &qp->remote, qkey, qp->config.sl);
}

static void send_datagram(struct datagram *datagram, uint32_t room, uint32_t length)
{
    struct bench *bench = &datagram->bench;
    if (room)
        bench_receive(bench, bench->qp[1], &datagram->receive, TO, room);
    bench_post(bench, bench->qp[0], &datagram->wqe, VERB_SEND_IMM, FROM, 0, length);
    run(bench);
}

TEST(datagram_leaves_room_for_the_grh)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t length = 0; length <= 1024; length += 512) {
            struct datagram datagram;
            datagram_init(&datagram, bench_framings[f], 0x1234);
            send_datagram(&datagram, GRH_BYTES + 1024, length);
            const struct receive *receive = &datagram.receive;
            const uint8_t *grh = datagram.bench.sink[1] + TO;
            EXPECT_EQUAL(STATUS_SUCCESS, datagram.wqe.record.status);
            EXPECT_EQUAL(STATUS_SUCCESS, receive->status);
            EXPECT_EQUAL(GRH_BYTES + length, receive->received_bytes);
            EXPECT(receive->has_immediate && receive->immediate == 99);
            EXPECT_EQUAL(datagram.bench.qp[0]->qpn, receive->src_qp);
            EXPECT(bench_arrived(&datagram.bench, 1, FROM, TO + GRH_BYTES, length));
            EXPECT_EQUAL(f == 0 ? 0x45 : GUARD_BYTE, grh[20]);
            EXPECT_EQUAL(GUARD_BYTE, grh[19]);
            if (f == 0)
                EXPECT_EQUAL(0x0A000001, read_be32(grh + 32));
            bench_free(&datagram.bench);
        }
}

TEST(datagram_that_cannot_be_received_is_dropped)
{
    struct datagram datagram;
    datagram_init(&datagram, FRAMING_ETHERNET, 0x4321); /* another Q_Key */
    send_datagram(&datagram, 2000, 100);
    EXPECT_EQUAL(STATUS_PENDING, datagram.receive.status);
    EXPECT_EQUAL(1, nic_counters(&datagram.bench.nic[1])->rx_qkey_violations);
    bench_free(&datagram.bench);

    datagram_init(&datagram, FRAMING_ETHERNET, 0x1234);
    send_datagram(&datagram, 0, 100);
    EXPECT_EQUAL(STATUS_SUCCESS, datagram.wqe.record.status);
    EXPECT_EQUAL(1, nic_counters(&datagram.bench.nic[1])->out_of_buffer);
    bench_free(&datagram.bench);

    datagram_init(&datagram, FRAMING_ETHERNET, 0x1234);
    send_datagram(&datagram, GRH_BYTES + 99, 100);
    EXPECT_EQUAL(STATUS_LOC_LEN_ERR, datagram.receive.status);
    EXPECT(bench_untouched(&datagram.bench, 1, 0, 0));
    bench_free(&datagram.bench);

    datagram_init(&datagram, FRAMING_ETHERNET, 0x1234);
    send_datagram(&datagram, 2000, 1025); /* more than the MTU */
    EXPECT_EQUAL(STATUS_LOC_LEN_ERR, datagram.wqe.record.status);
    EXPECT_EQUAL(0, bench_count(&datagram.bench, 0, -1));
    bench_free(&datagram.bench);
}

TEST(datagram_to_an_invalid_key_fails_its_receiver)
{
    struct datagram datagram;
    datagram_init(&datagram, FRAMING_ETHERNET, 0x1234);
    struct bench *bench = &datagram.bench;
    bench_receive(bench, bench->qp[1], &datagram.receive, TO, 2000);
    nic_invalidate(&bench->nic[1], 0, bench->sink_key[1]);
    send_datagram(&datagram, 0, 100);
    EXPECT_EQUAL(STATUS_SUCCESS, datagram.wqe.record.status);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, datagram.receive.status);
    EXPECT_EQUAL(QP_ERR, qp_state(bench->qp[1]));
    EXPECT(bench_untouched(bench, 1, 0, 0));
    bench_free(bench);
}

/* ---- receives ----------------------------------------------------------------------------------
 */

TEST(queue_pairs_consume_shared_receives_in_order)
{
    struct bench bench;
    struct test_wqe wqes[4] = {0};
    struct receive receives[4];
    struct srq srq = {0};
    struct qp_config config = bench_qp_config;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    srq.nic = &bench.nic[1];
    config.srq = &srq;
    struct qp *pairs[2] = {bench_add_pair(&bench, &config), bench_add_pair(&bench, &config)};
    for (uint32_t i = 0; i < 4; i++) {
        receives[i] =
            (struct receive){.lkey = bench.sink_key[1], .va = FIRST_VA + 1000 * i, .length = 1000};
        srq_post(&srq, &receives[i], 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        bench_post(&bench, pairs[i % 2], &wqes[i], VERB_SEND, 1000 * i, 0, 1000);
        run(&bench);
        EXPECT_EQUAL(STATUS_SUCCESS, receives[i].status);
    }
    EXPECT(bench_arrived(&bench, 1, 0, 0, 4000));
    EXPECT(!srq.queue.first);
    bench_free(&bench);
}

TEST(receive_with_an_invalid_key_fails_at_both_ends)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    struct receive receive;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_receive(&bench, bench.qp[1], &receive, 0, 100);
    nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]);
    bench_post(&bench, bench.qp[0], &wqe, VERB_SEND, 0, 0, 100);
    run(&bench);
    EXPECT_EQUAL(STATUS_REM_OP_ERR, wqe.record.status);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, receive.status);
    EXPECT(bench_untouched(&bench, 1, 0, 0));
    bench_free(&bench);
}

TEST(unreliable_receive_with_invalid_key_fails_locally)
{
    /* The key is invalid from the first packet on, or once part of the message is in memory.
     * Another receive is posted behind it. */
    for (int begun = 0; begun < 2; begun++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        struct receive receives[2];
        struct qp_config config = bench_qp_config;
        config.transport = TRANSPORT_UC;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        for (int i = 0; i < 2; i++)
            bench_receive(&bench, bench.qp[1], &receives[i], 0, 100000);
        bench_post(&bench, bench.qp[0], &wqe, VERB_SEND, 0, 0, 100000);
        if (begun)
            bench_run(&bench, 2 * PS_PER_US);
        nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]);
        run(&bench);
        EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, receives[0].status);
        EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, receives[1].status);
        EXPECT_EQUAL(QP_ERR, qp_state(bench.qp[1]));
        EXPECT_EQUAL(QP_RTS, qp_state(bench.qp[0]));
        EXPECT_EQUAL(0, bench_count(&bench, 1, -1));
        bench_free(&bench);
    }
}

TEST(send_waits_for_end_to_end_credit)
{
    for (int credits = 0; credits < 2; credits++) {
        struct bench bench;
        struct test_wqe wqes[20] = {0};
        struct receive receives[20];
        struct qp_config config = bench_qp_config;
        config.credits = credits;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        for (uint32_t i = 0; i < 2; i++)
            bench_receive(&bench, bench.qp[1], &receives[i], i * 100, 100);
        for (uint32_t i = 0; i < 20; i++)
            bench_post(&bench, bench.qp[0], &wqes[i], VERB_SEND, i * 100, 0, 100);
        bench_run(&bench, 5 * PS_PER_US);
        /* Without credits all SENDs leave at once; with credits only a few do. */
        uint32_t sent = bench_count(&bench, 0, -1);
        EXPECT(credits ? sent <= 5 : sent == 20);
        for (uint32_t i = 2; i < 20; i++)
            bench_receive(&bench, bench.qp[1], &receives[i], i * 100, 100);
        run(&bench);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[19].record.status);
        EXPECT(bench_arrived(&bench, 1, 0, 0, 2000));
        bench_free(&bench);
    }
}

/* ---- states -------------------------------------------------------------------------------------
 */

TEST(drained_send_queue_finishes_started_messages_only)
{
    struct bench bench;
    struct test_wqe wqes[2] = {0};
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    for (uint32_t i = 0; i < 2; i++)
        bench_post(&bench, bench.qp[0], &wqes[i], VERB_WRITE, 0, i * 10000, 10000);
    bench_run(&bench, 300 * PS_PER_NS);
    EXPECT(qp_modify(bench.qp[0], QP_SQD, bench.clock.now));
    run(&bench);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_PENDING, wqes[1].record.status);
    EXPECT(qp_modify(bench.qp[0], QP_RTS, bench.clock.now));
    run(&bench);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[1].record.status);
    bench_free(&bench);
}

/* Posts two messages and a receive. */
static void begin_with_work(struct bench *bench, struct test_wqe wqes[2], struct receive *receive)
{
    bench_init(bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_receive(bench, bench->qp[0], receive, 0, 100);
    for (int i = 0; i < 2; i++)
        bench_post(bench, bench->qp[0], &wqes[i], VERB_WRITE, 0, 0, 5000);
}

TEST(failed_queue_pair_flushes_all_work_requests)
{
    struct bench bench;
    struct test_wqe wqes[2] = {0};
    struct receive receive;
    begin_with_work(&bench, wqes, &receive);
    EXPECT(qp_modify(bench.qp[0], QP_ERR, 0));
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, receive.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->resp_cqe_flush_error);
    run(&bench);
    EXPECT_EQUAL(0, bench.pool.in_use);
    bench_free(&bench);
}

TEST(reset_queue_pair_cancels_all_work_requests)
{
    struct bench bench;
    struct test_wqe wqes[2] = {0};
    struct receive receive;
    begin_with_work(&bench, wqes, &receive);
    EXPECT(qp_modify(bench.qp[0], QP_RESET, 0));
    EXPECT_EQUAL(STATUS_CANCELLED, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_CANCELLED, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_CANCELLED, receive.status);
    const struct nic_counters *counters = nic_counters(&bench.nic[0]);
    EXPECT_EQUAL(0, counters->req_cqe_flush_error + counters->req_cqe_error);
    EXPECT_EQUAL(0, counters->resp_cqe_flush_error + counters->resp_cqe_error);
    run(&bench);
    EXPECT_EQUAL(0, bench.pool.in_use);
    bench_free(&bench);
}

/* ---- protection
 * ---------------------------------------------------------------------------------- */

TEST(packets_need_a_matching_partition)
{
    static const struct {
        uint16_t one, other;
        bool together;
    } cases[] = {
        {0xFFFF, 0xFFFF, true},  {0x8001, 0x0001, true},  {0x0001, 0x8001, true},
        {0x0001, 0x0001, false}, {0x8001, 0x8002, false}, {0xFFFF, 0x8001, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        bench_init(&bench, FRAMING_INFINIBAND, &bench_qp_config);
        bench.qp[0]->config.pkey = cases[i].one;
        bench.qp[1]->config.pkey = cases[i].other;
        bench_post(&bench, bench.qp[0], &wqe, VERB_WRITE, 0, 0, 100);
        run(&bench);
        EXPECT_EQUAL(cases[i].together, wqe.record.status == STATUS_SUCCESS);
        EXPECT_EQUAL(!cases[i].together, nic_counters(&bench.nic[1])->rx_pkey_violations > 0);
        EXPECT(bench_untouched(&bench, 1, 0, cases[i].together ? 100 : 0));
        bench_free(&bench);
    }
}

TEST(reused_region_slot_has_a_new_key)
{
    enum { TURNS = 200 };
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct nic *nic = &bench.nic[0];
    uint32_t room = nic->config.max_regions - 2, keys[TURNS], turn = 0;
    for (; turn < room; turn++)
        keys[turn] = nic_add_region(nic, 0, 0, 8, 0, bench.source[0]);
    EXPECT_EQUAL(0, nic_add_region(nic, 0, 0, 8, 0, bench.source[0]));
    for (; turn < TURNS; turn++) {
        EXPECT(nic_invalidate(nic, 0, keys[turn - room]));
        keys[turn] = nic_add_region(nic, 0, 0, 8, 0, bench.source[0]);
        EXPECT_EQUAL(0, nic_add_region(nic, 0, 0, 8, 0, bench.source[0]));
    }
    for (uint32_t i = 0; i < TURNS; i++) {
        EXPECT_EQUAL(i >= TURNS - room, mr_has(&nic->mrs, 0, keys[i]));
        EXPECT(i < room || keys[i] == ((keys[i - room] & ~0xFFu) | ((keys[i - room] + 1) & 0xFF)));
    }
    bench_free(&bench);
}

TEST(invalidated_key_grants_no_access)
{
    static const enum verb verbs[] = {VERB_WRITE, VERB_READ, VERB_FETCH_ADD};
    for (int v = 0; v < 3; v++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        EXPECT(nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]));
        EXPECT(nic_invalidate(&bench.nic[1], 0, bench.source_key[1]));
        EXPECT(!nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]));
        bench_post(&bench, bench.qp[0], &wqe, verbs[v], 0, 0, ATOMIC_BYTES);
        run(&bench);
        EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqe.record.status);
        EXPECT(bench_untouched(&bench, 1, 0, 0));
        bench_free(&bench);
    }
}

MAIN(RUN(completion_has_immediate_data_and_byte_count),
     RUN(send_can_invalidate_a_key_of_the_receiver),
     RUN(read_of_any_length_returns_the_remote_bytes),
     RUN(atomic_returns_the_old_value_and_executes_once),
     RUN(outstanding_reads_stay_within_max_rd_atomic), RUN(max_dest_rd_atomic_can_change_in_sqd),
     RUN(reads_beyond_max_dest_rd_atomic_are_refused), RUN(inline_data_is_not_fetched_from_memory),
     RUN(message_can_have_two_gigabytes), RUN(unreliable_message_that_loses_a_packet_is_discarded),
     RUN(unreliable_message_completes_when_it_is_sent),
     RUN(invalidated_key_stops_an_unreliable_sender), RUN(datagram_leaves_room_for_the_grh),
     RUN(datagram_that_cannot_be_received_is_dropped),
     RUN(datagram_to_an_invalid_key_fails_its_receiver),
     RUN(queue_pairs_consume_shared_receives_in_order),
     RUN(receive_with_an_invalid_key_fails_at_both_ends),
     RUN(unreliable_receive_with_invalid_key_fails_locally), RUN(send_waits_for_end_to_end_credit),
     RUN(drained_send_queue_finishes_started_messages_only),
     RUN(failed_queue_pair_flushes_all_work_requests),
     RUN(reset_queue_pair_cancels_all_work_requests), RUN(packets_need_a_matching_partition),
     RUN(reused_region_slot_has_a_new_key), RUN(invalidated_key_grants_no_access))
