/* Keys that are invalidated while messages are in flight: afterwards no memory is read or written
 * through them. */
#include <string.h>

#include "testbench.h"

enum { LENGTH = 100 * 1024, FROM = 77, TO = 33 };

#define SOON (5 * PS_PER_US) /* half of such a message is in flight or delivered */

static const char *const recoveries[] = {"go-back-n", "go-back-0", "selective-repeat"};

static struct qp_config config_of(const char *recovery)
{
    struct qp_config config = bench_qp_config;
    config.recovery = recovery;
    config.window = 64;
    return config;
}

/* Copies a sink, for a later comparison. */
static uint8_t *copy_of_sink(const struct bench *bench, int side)
{
    uint8_t *before = malloc(MEMORY);
    memcpy(before, bench->sink[side], MEMORY);
    return before;
}

static void expect_unchanged(const struct bench *bench, int side, uint8_t *before)
{
    EXPECT(memcmp(before, bench->sink[side], MEMORY) == 0);
    free(before);
}

static bool has_begun(const struct bench *bench, int side)
{
    return !bench_untouched(bench, side, 0, 0);
}

static uint8_t last_syndrome(const struct bench *bench, int side)
{
    uint32_t count = bench_count(bench, side, OPCODE_ACKNOWLEDGE);
    EXPECT(count > 0);
    return bench_find(bench, side, OPCODE_ACKNOWLEDGE, count - 1)->aeth.syndrome;
}

static void end_all(struct bench *bench)
{
    bench_run(bench, 20 * PS_PER_MS);
    EXPECT_EQUAL(0, bench->pool.in_use);
    bench_free(bench);
}

TEST(posted_message_fails_after_its_key_is_invalidated)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_WRITE, VERB_READ, VERB_FETCH_ADD};
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
        struct bench bench;
        struct test_wqe wqes[3] = {0};
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        bench.nic[0].config.path.doorbell_ps = SOON;
        bool reads = verbs[v] == VERB_READ || verbs[v] == VERB_FETCH_ADD;
        for (int i = 0; i < 2; i++)
            bench_post(&bench, bench.qp[0], &wqes[i], verbs[v], 0, 0, ATOMIC_BYTES);
        nic_invalidate(&bench.nic[0], 0, reads ? bench.sink_key[0] : bench.source_key[0]);
        bench_run(&bench, PS_PER_MS);
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqes[0].record.status);
        EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[1].record.status);
        EXPECT_EQUAL(QP_ERR, qp_state(bench.qp[0]));
        EXPECT_EQUAL(0, bench_count(&bench, 0, -1));
        EXPECT(!has_begun(&bench, 0) && !has_begun(&bench, 1));
        end_all(&bench);
    }
}

TEST(invalidated_key_fails_only_its_own_message)
{
    for (int lost = 0; lost < 2; lost++) {
        struct bench bench;
        struct test_wqe wqes[3] = {0};
        bench_init(&bench, FRAMING_INFINIBAND, &bench_qp_config);
        if (lost)
            bench.plan[0][0] = DROP;
        bench_write(&bench, bench.qp[0], &wqes[0], 0, 0, 1000);
        bench_write(&bench, bench.qp[0], &wqes[1], 0, 2000, LENGTH);
        wqes[0].message.lkey = bench.sink_key[0]; /* another key, which stays valid */
        bench_run(&bench, 300 * PS_PER_NS);
        nic_invalidate(&bench.nic[0], 0, bench.source_key[0]);
        bench_write(&bench, bench.qp[0], &wqes[2], 0, 0, 0);
        bench_run(&bench, 10 * PS_PER_MS);
        EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqes[1].record.status);
        EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[2].record.status);
        EXPECT(bench_count(&bench, 0, -1) < 20);
        end_all(&bench);
    }
}

TEST(invalid_key_does_not_block_other_queue_pairs)
{
    struct bench bench;
    struct test_wqe wqes[2] = {0}, other = {0};
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp *second = bench_add_pair(&bench, &bench_qp_config);
    bench_write(&bench, bench.qp[0], &wqes[0], 0, 0, 1000);
    bench_write(&bench, bench.qp[0], &wqes[1], 0, 2000, 1000);
    wqes[0].message.lkey = bench.sink_key[0];
    wqes[1].message.lkey ^= 1; /* as if its key had been invalidated */
    bench_write(&bench, second, &other, 0, 4000, 1000);
    bench_run(&bench, 400 * PS_PER_NS);
    EXPECT_EQUAL(STATUS_PENDING, wqes[0].record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->tx_packets - 1);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqes[0].record.status);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqes[1].record.status);
    EXPECT_EQUAL(STATUS_SUCCESS, other.record.status);
    end_all(&bench);
}

TEST(read_response_is_not_written_through_an_invalid_key)
{
    for (int r = 0; r < 3; r++)
        for (int lost = 0; lost < 2; lost++) {
            struct bench bench;
            struct test_wqe wqe = {0};
            struct qp_config config = config_of(recoveries[r]);
            bench_init(&bench, FRAMING_ETHERNET, &config);
            bench.plan[1][10] = lost ? DROP : PASS;
            bench_post(&bench, bench.qp[0], &wqe, VERB_READ, FROM, TO, LENGTH);
            bench_run(&bench, SOON);
            EXPECT(has_begun(&bench, 0));
            nic_invalidate(&bench.nic[0], 0, bench.sink_key[0]);
            uint8_t *before = copy_of_sink(&bench, 0);
            bench_run(&bench, 10 * PS_PER_MS);
            EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqe.record.status);
            EXPECT_EQUAL(QP_ERR, qp_state(bench.qp[0]));
            expect_unchanged(&bench, 0, before);
            end_all(&bench);
        }
}

TEST(atomic_result_is_not_written_through_an_invalid_key)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_post(&bench, bench.qp[0], &wqe, VERB_FETCH_ADD, 64, 0, ATOMIC_BYTES);
    bench_run(&bench, 300 * PS_PER_NS);
    nic_invalidate(&bench.nic[0], 0, bench.sink_key[0]);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, wqe.record.status);
    EXPECT(!has_begun(&bench, 0));
    end_all(&bench);
}

TEST(write_stops_when_its_key_is_invalidated)
{
    for (int r = 0; r < 3; r++)
        for (int lost = 0; lost < 2; lost++) {
            struct bench bench;
            struct test_wqe wqe = {0};
            struct qp_config config = config_of(recoveries[r]);
            bench_init(&bench, FRAMING_INFINIBAND, &config);
            bench.plan[0][10] = lost ? DROP : PASS;
            bench_write(&bench, bench.qp[0], &wqe, FROM, TO, LENGTH);
            bench_run(&bench, SOON);
            EXPECT(has_begun(&bench, 1));
            nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]);
            uint8_t *before = copy_of_sink(&bench, 1);
            bench_run(&bench, 10 * PS_PER_MS);
            EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqe.record.status);
            EXPECT_EQUAL(AETH_NAK_REMOTE_ACCESS_ERROR, last_syndrome(&bench, 1));
            EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->resp_remote_access_errors);
            expect_unchanged(&bench, 1, before);
            end_all(&bench);
        }
}

TEST(unreliable_write_stops_when_its_key_is_invalidated)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    struct qp_config config = bench_qp_config;
    config.transport = TRANSPORT_UC;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench_write(&bench, bench.qp[0], &wqe, FROM, TO, LENGTH);
    bench_run(&bench, SOON);
    nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]);
    uint8_t *before = copy_of_sink(&bench, 1);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
    EXPECT(wqe.record.delivered_ps == NEVER);
    expect_unchanged(&bench, 1, before);
    end_all(&bench);
}

TEST(send_stops_when_the_receive_key_is_invalidated)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    struct receive receive;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench_receive(&bench, bench.qp[1], &receive, TO, LENGTH);
    bench_send(&bench, bench.qp[0], &wqe, FROM, LENGTH);
    bench_run(&bench, SOON);
    EXPECT(has_begun(&bench, 1));
    nic_invalidate(&bench.nic[1], 0, bench.sink_key[1]);
    uint8_t *before = copy_of_sink(&bench, 1);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_REM_OP_ERR, wqe.record.status);
    EXPECT_EQUAL(STATUS_LOC_PROT_ERR, receive.status);
    EXPECT_EQUAL(AETH_NAK_REMOTE_OPERATIONAL_ERROR, last_syndrome(&bench, 1));
    expect_unchanged(&bench, 1, before);
    end_all(&bench);
}

TEST(send_with_invalidate_stops_another_queue_pairs_write)
{
    struct bench bench;
    struct test_wqe write = {0}, send = {0};
    struct receive receive;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp *other = bench_add_pair(&bench, &bench_qp_config);
    bench_receive(&bench, other->peer, &receive, 0, 0);
    bench_write(&bench, bench.qp[0], &write, FROM, TO, LENGTH);
    bench_run(&bench, SOON);
    send.message.immediate = bench.sink_key[1];
    bench_post(&bench, other, &send, VERB_SEND_INV, 0, 0, 0);
    while (receive.status == STATUS_PENDING)
        bench_run(&bench, 10 * PS_PER_NS);
    EXPECT_EQUAL(STATUS_SUCCESS, receive.status);
    uint8_t *before = copy_of_sink(&bench, 1);
    bench_run(&bench, PS_PER_MS);
    EXPECT_EQUAL(STATUS_SUCCESS, send.record.status);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, write.record.status);
    expect_unchanged(&bench, 1, before);
    end_all(&bench);
}

TEST(read_is_answered_until_its_key_is_invalidated)
{
    for (int r = 0; r < 3; r++)
        for (int before = 0; before < 2; before++) {
            struct bench bench;
            struct test_wqe wqes[2] = {0};
            struct receive receive;
            struct qp_config config = config_of(recoveries[r]);
            bench_init(&bench, FRAMING_ETHERNET, &config);
            bench_receive(&bench, bench.qp[1], &receive, 0, 0);
            bench_post(&bench, bench.qp[0], &wqes[0], VERB_READ, FROM, TO, LENGTH);
            bench_post(&bench, bench.qp[0], &wqes[1], VERB_READ, FROM, TO, 5000);
            bench_run(&bench, before ? 700 * PS_PER_NS : SOON);
            nic_invalidate(&bench.nic[1], 0, bench.source_key[1]);
            uint32_t answered = bench_count(&bench, 1, -1);
            bench_run(&bench, PS_PER_MS);
            EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqes[0].record.status);
            EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, wqes[1].record.status);
            EXPECT_EQUAL(STATUS_WR_FLUSH_ERR, receive.status);
            EXPECT_EQUAL(QP_ERR, qp_state(bench.qp[1]));
            EXPECT_EQUAL(AETH_NAK_REMOTE_ACCESS_ERROR, last_syndrome(&bench, 1));
            EXPECT(bench_count(&bench, 1, -1) <=
                   answered + 10); /* responses in flight, and the NAK */
            EXPECT_EQUAL(1, nic_counters(&bench.nic[1])->resp_remote_access_errors);
            EXPECT_EQUAL(0, nic_counters(&bench.nic[0])->local_ack_timeout_err);
            end_all(&bench);
        }
}

TEST(repeated_read_is_refused_after_key_invalidation)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    bench.plan[1][4] = DROP; /* the last response */
    bench_post(&bench, bench.qp[0], &wqe, VERB_READ, FROM, TO, 5000);
    bench_run(&bench, 20 * PS_PER_US);
    EXPECT_EQUAL(5, bench_count(&bench, 1, -1));
    nic_invalidate(&bench.nic[1], 0, bench.source_key[1]);
    bench_run(&bench, 10 * PS_PER_MS);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, wqe.record.status);
    EXPECT_EQUAL(1, nic_counters(&bench.nic[0])->local_ack_timeout_err);
    end_all(&bench);
}

/* Registers other memory until the key is given out again, for less memory than before. */
static uint8_t *repeat_key(struct nic *nic, uint32_t key)
{
    uint8_t *bytes = malloc(1);
    for (;;) {
        uint32_t other = nic_add_region(nic, 0, 0, 1, 0, bytes);
        EXPECT(other);
        if (other == key)
            return bytes;
        nic_invalidate(nic, 0, other);
    }
}

/* The bytes of a region are freed while a message needs them, and its key names another one. */
TEST(repeated_key_does_not_lead_to_freed_bytes)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_WRITE, VERB_READ};
    for (size_t v = 0; v < 3; v++)
        for (int side = 0; side < 2; side++) {
            struct bench bench;
            struct test_wqe wqe = {0};
            struct receive receive;
            bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
            uint8_t *bytes = calloc(1, LENGTH);
            uint32_t access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
            uint32_t key = nic_add_region(&bench.nic[side], 0, FIRST_VA, LENGTH, access, bytes);
            if (side == 1)
                bench.sink_key[1] = bench.source_key[1] = key;
            else
                bench.sink_key[0] = bench.source_key[0] = key;
            bench_receive(&bench, bench.qp[1], &receive, 0, LENGTH);
            bench_post(&bench, bench.qp[0], &wqe, verbs[v], 0, 0, LENGTH);
            bench_run(&bench, SOON);
            EXPECT(nic_invalidate(&bench.nic[side], 0, key));
            free(bytes);
            uint8_t *other = repeat_key(&bench.nic[side], key);
            bench_run(&bench, 10 * PS_PER_MS);
            enum status refused = verbs[v] == VERB_SEND ? STATUS_REM_OP_ERR : STATUS_REM_ACCESS_ERR;
            EXPECT_EQUAL(side ? refused : STATUS_LOC_PROT_ERR, wqe.record.status);
            free(other);
            end_all(&bench);
        }
}

MAIN(RUN(posted_message_fails_after_its_key_is_invalidated),
     RUN(invalidated_key_fails_only_its_own_message),
     RUN(invalid_key_does_not_block_other_queue_pairs),
     RUN(read_response_is_not_written_through_an_invalid_key),
     RUN(atomic_result_is_not_written_through_an_invalid_key),
     RUN(write_stops_when_its_key_is_invalidated),
     RUN(unreliable_write_stops_when_its_key_is_invalidated),
     RUN(send_stops_when_the_receive_key_is_invalidated),
     RUN(send_with_invalidate_stops_another_queue_pairs_write),
     RUN(read_is_answered_until_its_key_is_invalidated),
     RUN(repeated_read_is_refused_after_key_invalidation),
     RUN(repeated_key_does_not_lead_to_freed_bytes))
