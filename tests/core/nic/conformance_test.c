/* The transport's rules as tables: one row is one packet, or one answer, and its expected effect;
 * each row begins with the rule's name. */
#include <string.h>

#include "nic/psn.h"
#include "testbench.h"

enum { MTU = 1024, RECEIVE = 2000, NOTHING = -1 };

/* The region whose R_Key a request carries. */
enum key { SINK, SOURCE, NO_KEY };

/* ---- the responder -------------------------------------------------------------------- */

struct request {
    const char *rule;
    uint8_t opcode;
    uint32_t payload, dma_length;
    int64_t va; /* offset from the region's first byte */
    enum key key;
    bool receive; /* whether a receive of RECEIVE bytes is posted */
    int ahead;    /* PSN less the expected PSN */
    int opcode_back, syndrome;
};

#define ACK OPCODE_ACKNOWLEDGE, AETH_ACK
#define NAK(code) OPCODE_ACKNOWLEDGE, 0x60 | (code)
#define RNR OPCODE_ACKNOWLEDGE, AETH_RNR_NAK | 1
#define SILENCE NOTHING, NOTHING

static const struct request requests[] = {
    /* SEND */
    {"a whole message", OPCODE_SEND_ONLY, 100, 0, 0, SINK, true, 0, ACK},
    {"of nothing", OPCODE_SEND_ONLY, 0, 0, 0, SINK, true, 0, ACK},
    {"no receive", OPCODE_SEND_ONLY, 100, 0, 0, SINK, false, 0, RNR},
    {"no receive", OPCODE_SEND_FIRST, MTU, 0, 0, SINK, false, 0, RNR},
    {"longer than the MTU", OPCODE_SEND_ONLY, MTU + 4, 0, 0, SINK, true, 0, NAK(1)},
    {"FIRST is an MTU", OPCODE_SEND_FIRST, MTU - 4, 0, 0, SINK, true, 0, NAK(1)},
    {"FIRST is an MTU", OPCODE_SEND_FIRST, 0, 0, 0, SINK, true, 0, NAK(1)},
    {"MIDDLE of nothing", OPCODE_SEND_MIDDLE, MTU, 0, 0, SINK, true, 0, NAK(1)},
    {"LAST of nothing", OPCODE_SEND_LAST, 10, 0, 0, SINK, true, 0, NAK(1)},
    {"LAST of nothing", OPCODE_SEND_LAST_IMM, 10, 0, 0, SINK, true, 0, NAK(1)},
    {"LAST of nothing", OPCODE_SEND_LAST_INV, 10, 0, 0, SINK, true, 0, NAK(1)},
    {"immediate", OPCODE_SEND_ONLY_IMM, 100, 0, 0, SINK, true, 0, ACK},
    {"immediate", OPCODE_SEND_ONLY_IMM, 100, 0, 0, SINK, false, 0, RNR},
    {"invalidate", OPCODE_SEND_ONLY_INV, 100, 0, 0, SINK, true, 0, ACK},
    {"invalidate with nothing", OPCODE_SEND_ONLY_INV, 0, 0, 0, SINK, true, 0, ACK},
    {"invalidate, no receive", OPCODE_SEND_ONLY_INV, 100, 0, 0, SINK, false, 0, RNR},
    {"no such key", OPCODE_SEND_ONLY_INV, 100, 0, 0, NO_KEY, true, 0, NAK(2)},
    /* WRITE */
    {"within the region", OPCODE_WRITE_ONLY, 100, 100, 0, SINK, false, 0, ACK},
    {"of nothing needs no key", OPCODE_WRITE_ONLY, 0, 0, 0, NO_KEY, false, 0, ACK},
    {"to the last byte", OPCODE_WRITE_ONLY, 100, 100, MEMORY - 100, SINK, false, 0, ACK},
    {"no such key", OPCODE_WRITE_ONLY, 100, 100, 0, NO_KEY, false, 0, NAK(2)},
    {"not to be written", OPCODE_WRITE_ONLY, 100, 100, 0, SOURCE, false, 0, NAK(2)},
    {"before the region", OPCODE_WRITE_ONLY, 100, 100, -1, SINK, false, 0, NAK(2)},
    {"beyond its end", OPCODE_WRITE_ONLY, 100, 100, MEMORY - 99, SINK, false, 0, NAK(2)},
    {"all of it counts", OPCODE_WRITE_FIRST, MTU, MEMORY + 1, 0, SINK, false, 0, NAK(2)},
    {"less than DMALen", OPCODE_WRITE_ONLY, 99, 100, 0, SINK, false, 0, NAK(1)},
    {"more than DMALen", OPCODE_WRITE_ONLY, 101, 100, 0, SINK, false, 0, NAK(1)},
    {"FIRST is an MTU", OPCODE_WRITE_FIRST, MTU - 4, 5000, 0, SINK, false, 0, NAK(1)},
    {"FIRST is not all", OPCODE_WRITE_FIRST, MTU, MTU, 0, SINK, false, 0, NAK(1)},
    {"over 2 GB", OPCODE_WRITE_FIRST, MTU, MESSAGE_MAX + 1, 0, SINK, false, 0, NAK(1)},
    {"MIDDLE of nothing", OPCODE_WRITE_MIDDLE, MTU, 0, 0, SINK, false, 0, NAK(1)},
    {"LAST of nothing", OPCODE_WRITE_LAST, 10, 0, 0, SINK, false, 0, NAK(1)},
    {"LAST of nothing", OPCODE_WRITE_LAST_IMM, 10, 0, 0, SINK, true, 0, NAK(1)},
    {"immediate", OPCODE_WRITE_ONLY_IMM, 100, 100, 0, SINK, true, 0, ACK},
    {"immediate with nothing", OPCODE_WRITE_ONLY_IMM, 0, 0, 0, NO_KEY, true, 0, ACK},
    {"no such key", OPCODE_WRITE_ONLY_IMM, 100, 100, 0, NO_KEY, true, 0, NAK(2)},
    {"immediate", OPCODE_WRITE_ONLY_IMM, 100, 100, 0, SINK, false, 0, RNR},
    /* READ */
    {"within the region", OPCODE_READ_REQUEST, 0, 100, 0, SOURCE, false, 0,
     OPCODE_READ_RESPONSE_ONLY, AETH_ACK},
    {"of nothing", OPCODE_READ_REQUEST, 0, 0, 0, NO_KEY, false, 0, OPCODE_READ_RESPONSE_ONLY,
     AETH_ACK},
    {"within the region", OPCODE_READ_REQUEST, 0, MTU + 1, 0, SOURCE, false, 0,
     OPCODE_READ_RESPONSE_LAST, AETH_ACK},
    {"no such key", OPCODE_READ_REQUEST, 0, 100, 0, NO_KEY, false, 0, NAK(2)},
    {"not to be read", OPCODE_READ_REQUEST, 0, 100, 0, SINK, false, 0, NAK(2)},
    {"before the region", OPCODE_READ_REQUEST, 0, 100, -1, SOURCE, false, 0, NAK(2)},
    {"beyond its end", OPCODE_READ_REQUEST, 0, 9, MEMORY - 8, SOURCE, false, 0, NAK(2)},
    {"over 2 GB", OPCODE_READ_REQUEST, 0, MESSAGE_MAX + 1, 0, SOURCE, false, 0, NAK(1)},
    {"a payload", OPCODE_READ_REQUEST, 4, 100, 0, SOURCE, false, 0, NAK(1)},
    /* Atomics */
    {"on a word of the region", OPCODE_CMP_SWAP, 0, 0, 8, SINK, false, 0, OPCODE_ATOMIC_ACKNOWLEDGE,
     AETH_ACK},
    {"on a word of the region", OPCODE_FETCH_ADD, 0, 0, 8, SINK, false, 0,
     OPCODE_ATOMIC_ACKNOWLEDGE, AETH_ACK},
    {"not aligned", OPCODE_CMP_SWAP, 0, 0, 4, SINK, false, 0, NAK(1)},
    {"not aligned", OPCODE_FETCH_ADD, 0, 0, 1, SINK, false, 0, NAK(1)},
    {"no atomics", OPCODE_CMP_SWAP, 0, 0, 0, SOURCE, false, 0, NAK(2)},
    {"no such key", OPCODE_FETCH_ADD, 0, 0, 0, NO_KEY, false, 0, NAK(2)},
    {"beyond its end", OPCODE_FETCH_ADD, 0, 0, MEMORY, SINK, false, 0, NAK(2)},
    {"a payload", OPCODE_FETCH_ADD, 4, 0, 0, SINK, false, 0, NAK(1)},
    /* PSNs: ahead, and duplicates */
    {"one is missing", OPCODE_WRITE_ONLY, 4, 4, 0, SINK, false, 1, NAK(0)},
    {"farthest ahead", OPCODE_SEND_ONLY, 4, 0, 0, SINK, true, PSN_WINDOW, NAK(0)},
    {"duplicate", OPCODE_WRITE_ONLY, 4, 4, 0, SINK, false, -1, ACK},
    {"duplicate", OPCODE_SEND_ONLY, 4, 0, 0, SINK, true, -1, ACK},
    {"oldest duplicate", OPCODE_SEND_ONLY, 4, 0, 0, SINK, true, -PSN_WINDOW - 1, ACK},
    {"READ that is forgotten", OPCODE_READ_REQUEST, 0, 9, 0, SOURCE, false, -1, SILENCE},
    {"atomic likewise", OPCODE_FETCH_ADD, 0, 0, 0, SINK, false, -1, SILENCE},
    /* Opcodes */
    {"reserved", 0x15, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x18, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x19, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x1A, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x1B, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x1E, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"reserved", 0x1F, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"not supported: FLUSH", 0x1C, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"not supported: ATOMIC WRITE", 0x1D, 0, 0, 0, SINK, false, 0, NAK(1)},
    {"unreliable connection", 0x24, 4, 0, 0, SINK, true, 0, SILENCE},
    {"reliable datagram", 0x44, 4, 0, 0, SINK, true, 0, SILENCE},
    {"unreliable datagram", 0x64, 4, 0, 0, SINK, true, 0, SILENCE},
    {"extended reliable connection", 0xA4, 4, 0, 0, SINK, true, 0, SILENCE},
    {"vendor's own", 0xC4, 4, 0, 0, SINK, true, 0, SILENCE},

    /* Answers without a request. */
    {"no READ is outstanding", OPCODE_READ_RESPONSE_FIRST, MTU, 0, 0, SINK, true, 0, SILENCE},
    {"no READ is outstanding", OPCODE_READ_RESPONSE_MIDDLE, MTU, 0, 0, SINK, true, 0, SILENCE},
    {"no READ is outstanding", OPCODE_READ_RESPONSE_LAST, 4, 0, 0, SINK, true, 0, SILENCE},
    {"no READ is outstanding", OPCODE_READ_RESPONSE_ONLY, 4, 0, 0, SINK, true, 0, SILENCE},
    {"no atomic is outstanding", OPCODE_ATOMIC_ACKNOWLEDGE, 0, 0, 0, SINK, true, 0, SILENCE},
    {"nothing is outstanding", OPCODE_ACKNOWLEDGE, 0, 0, 0, SINK, true, 0, SILENCE},
};

static uint32_t key_of(const struct bench *bench, enum key key)
{
    return key == SINK ? bench->sink_key[1] : key == SOURCE ? bench->source_key[1] : 0xDEAD00;
}

static struct packet packet_of(const struct bench *bench, const struct request *request)
{
    uint32_t key = key_of(bench, request->key);
    uint64_t va = FIRST_VA + (uint64_t)request->va;
    uint32_t psn = bench->qp[1]->responder.expected + (uint32_t)request->ahead;
    struct packet packet = {.bth = {.opcode = request->opcode,
                                    .mig_req = true,
                                    .pad = (uint8_t)(-request->payload & 3),
                                    .pkey = PKEY_DEFAULT,
                                    .dest_qp = bench->qp[1]->qpn,
                                    .ack_req = true,
                                    .psn = psn & PSN_MASK},
                            .immediate = key};
    if (request->opcode == OPCODE_CMP_SWAP || request->opcode == OPCODE_FETCH_ADD)
        packet.atomic = (struct atomic_eth){.va = va, .rkey = key, .swap_add = 1, .compare = 0};
    else
        packet.reth = (struct reth){.va = va, .rkey = key, .dma_length = request->dma_length};
    return packet;
}

static void give(struct bench *bench, const struct request *request)
{
    uint8_t body[MTU_MAX + 64] = {0};
    struct packet packet = packet_of(bench, request);
    packet_write_front(body, &packet);
    bench_inject(bench, 1, body,
                 packet_header_bytes(request->opcode) + request->payload + packet.bth.pad);
}

static const struct packet_record *last_answer(const struct bench *bench)
{
    uint32_t answers = bench_count(bench, 1, -1);
    return answers ? bench_find(bench, 1, -1, answers - 1) : NULL;
}

/* Memory is unchanged unless the request was granted. */
static void expect_memory(const struct bench *bench, const struct request *request, bool granted)
{
    bool writes = request->opcode <= OPCODE_WRITE_ONLY_IMM || request->opcode > OPCODE_ACKNOWLEDGE;
    uint32_t bytes = request->payload ? request->payload : ATOMIC_BYTES;
    if (granted && writes && request->ahead == 0)
        EXPECT(bench_untouched(bench, 1, (uint32_t)request->va, bytes));
    else
        EXPECT(bench_untouched(bench, 1, 0, 0));
}

static void check_request(enum framing framing, const struct request *request)
{
    struct bench bench;
    struct receive receive;
    bench_init(&bench, framing, &bench_qp_config);
    if (request->receive)
        bench_receive(&bench, bench.qp[1], &receive, 0, RECEIVE);
    give(&bench, request);
    bench_run(&bench, 100 * PS_PER_US);
    const struct packet_record *answer = last_answer(&bench);
    int opcode = answer ? answer->bth.opcode : NOTHING;
    int syndrome = answer ? answer->aeth.syndrome : NOTHING;
    if (opcode != request->opcode_back || syndrome != request->syndrome) {
        fprintf(stderr, "%s, opcode %02x: expected %d %d, got %d %d\n", request->rule,
                request->opcode, request->opcode_back, request->syndrome, opcode, syndrome);
        exit(1);
    }
    bool fatal = syndrome > AETH_NAK_PSN_SEQUENCE_ERROR;
    EXPECT_EQUAL(fatal ? QP_ERR : QP_RTS, bench.qp[1]->state);
    expect_memory(&bench, request, syndrome == AETH_ACK);
    if (fatal && request->receive)
        EXPECT(receive.status != STATUS_PENDING && receive.status != STATUS_SUCCESS);
    bench_free(&bench);
}

TEST(every_request_gets_the_specified_answer)
{
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
            check_request(bench_framings[f], &requests[i]);
}

/* ---- the requester ---------------------------------------------------------------------- */

struct answer {
    const char *rule;
    enum verb verb; /* of the outstanding message: three packets, or one */
    uint8_t opcode;
    uint8_t syndrome;
    int ahead; /* PSN less the message's first PSN */
    uint32_t payload;
    int status;
    int resent_from; /* index of a packet of the message; NOTHING: not resent at once */
};

static const struct answer answers[] = {
    /* ACK */
    {"all", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x1F, 2, 0, STATUS_SUCCESS, NOTHING},
    {"with credits", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x05, 2, 0, STATUS_SUCCESS, NOTHING},
    {"not all", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x1F, 1, 0, STATUS_PENDING, NOTHING},
    {"ghost", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x1F, -1, 0, STATUS_PENDING, NOTHING},
    {"never sent", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x1F, 3, 0, STATUS_PENDING, NOTHING},
    /* NAK */
    {"PSN", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x60, 1, 0, STATUS_PENDING, 1},
    {"PSN", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x60, 0, 0, STATUS_PENDING, 0},
    {"old", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x60, -1, 0, STATUS_PENDING, NOTHING},
    {"invalid request", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x61, 1, 0, STATUS_REM_INV_REQ_ERR,
     NOTHING},
    {"remote access error", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x62, 0, 0, STATUS_REM_ACCESS_ERR,
     NOTHING},
    {"remote operational error", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x63, 2, 0, STATUS_REM_OP_ERR,
     NOTHING},
    {"old", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x62, -1, 0, STATUS_PENDING, NOTHING},
    {"reserved", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x65, 0, 0, STATUS_PENDING, NOTHING},
    {"reserved", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x7F, 0, 0, STATUS_PENDING, NOTHING},
    {"reserved", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x5F, 2, 0, STATUS_PENDING, NOTHING},
    {"reserved", VERB_WRITE, OPCODE_ACKNOWLEDGE, 0x9F, 2, 0, STATUS_PENDING, NOTHING},
    {"RNR", VERB_SEND, OPCODE_ACKNOWLEDGE, 0x3F, 0, 0, STATUS_PENDING, NOTHING},
    {"RNR, short", VERB_SEND, OPCODE_ACKNOWLEDGE, 0x21, 0, 0, STATUS_PENDING, 0},
    /* READ: three responses */
    {"in order", VERB_READ, OPCODE_READ_RESPONSE_FIRST, 0, 0, 1024, STATUS_PENDING, NOTHING},
    {"one is missing", VERB_READ, OPCODE_READ_RESPONSE_MIDDLE, 0, 1, 1024, STATUS_PENDING, 0},
    {"acknowledged, not answered", VERB_READ, OPCODE_ACKNOWLEDGE, 0x1F, 2, 0, STATUS_PENDING, 0},
    {"wrong length", VERB_READ, OPCODE_READ_RESPONSE_FIRST, 0, 0, 1020, STATUS_PENDING, NOTHING},
    {"ghost", VERB_READ, OPCODE_READ_RESPONSE_LAST, 0, -1, 1024, STATUS_PENDING, NOTHING},
    {"never asked for", VERB_READ, OPCODE_READ_RESPONSE_LAST, 0, 3, 1024, STATUS_PENDING, NOTHING},
    {"to a WRITE", VERB_WRITE, OPCODE_READ_RESPONSE_ONLY, 0, 0, 1024, STATUS_PENDING, NOTHING},
    {"remote access error", VERB_READ, OPCODE_ACKNOWLEDGE, 0x62, 0, 0, STATUS_REM_ACCESS_ERR,
     NOTHING},
    /* Atomics */
    {"answered", VERB_CMP_SWAP, OPCODE_ATOMIC_ACKNOWLEDGE, 0x1F, 0, 0, STATUS_SUCCESS, NOTHING},
    {"acknowledged, not answered", VERB_FETCH_ADD, OPCODE_ACKNOWLEDGE, 0x1F, 0, 0, STATUS_PENDING,
     0},
    {"to a READ", VERB_READ, OPCODE_ATOMIC_ACKNOWLEDGE, 0x1F, 0, 0, STATUS_PENDING, NOTHING},
    {"invalid request", VERB_FETCH_ADD, OPCODE_ACKNOWLEDGE, 0x61, 0, 0, STATUS_REM_INV_REQ_ERR,
     NOTHING},
};

static enum fate lose_requests(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return packet->from == 0 ? DROP : PASS;
}

static void answer_with(struct bench *bench, const struct answer *answer)
{
    uint8_t body[MTU_MAX + 64] = {0};
    struct packet packet = {.bth = {.opcode = answer->opcode,
                                    .pkey = PKEY_DEFAULT,
                                    .dest_qp = bench->qp[0]->qpn,
                                    .psn = (1000 + (uint32_t)answer->ahead) & PSN_MASK},
                            .aeth = {.syndrome = answer->syndrome}};
    packet_write_front(body, &packet);
    bench_inject(bench, 0, body, packet_header_bytes(answer->opcode) + answer->payload);
}

static void check_answer(enum framing framing, const struct answer *answer)
{
    struct bench bench;
    struct test_wqe wqe = {0};
    bench_init(&bench, framing, &bench_qp_config);
    bench.fate = lose_requests;
    bool atomic = answer->verb > VERB_READ;
    bench_post(&bench, bench.qp[0], &wqe, answer->verb, 0, 64, atomic ? ATOMIC_BYTES : 3000);
    bench_run(&bench, 10 * PS_PER_US);
    uint32_t sent = bench_count(&bench, 0, -1);
    answer_with(&bench, answer);
    bench_run(&bench, 20 * PS_PER_US);
    const struct packet_record *again = bench_find(&bench, 0, -1, sent);
    int resent_from = again ? psn_ahead(again->bth.psn, 1000) : NOTHING;
    if (wqe.record.status != answer->status || resent_from != answer->resent_from) {
        fprintf(stderr, "%s, syndrome %02x: expected %d, again from %d, got %d, %d\n", answer->rule,
                answer->syndrome, answer->status, answer->resent_from, wqe.record.status,
                resent_from);
        exit(1);
    }
    bool failed = answer->status > STATUS_PENDING;
    EXPECT_EQUAL(failed ? QP_ERR : QP_RTS, bench.qp[0]->state);
    bench_free(&bench);
}

TEST(every_answer_has_the_specified_effect)
{
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
            check_answer(bench_framings[f], &answers[i]);
}

/* ---- timers -------------------------------------------------------------------------------- */

/* Waiting times in milliseconds, indexed by the timer code of an RNR NAK. */
static const double rnr_ms[] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

TEST(rnr_nak_delays_the_retry_by_its_timer_code)
{
    for (uint8_t code = 0; code < 32; code++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        struct qp_config config = bench_qp_config;
        config.min_rnr_timer = code;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        bench_post(&bench, bench.qp[0], &wqe, VERB_SEND, 0, 0, 100);
        picoseconds want = (picoseconds)(rnr_ms[code] * 1000 + 0.5) * PS_PER_US;
        bench_run(&bench, want + 10 * PS_PER_US);
        picoseconds gap = bench_find(&bench, 0, -1, 1)->at - bench_find(&bench, 1, -1, 0)->at;
        EXPECT(gap >= want && gap < want + 2 * PS_PER_US);
        bench_free(&bench);
    }
}

/* Local ACK Timeout: 4.096 us * 2^n. */
TEST(ack_timeout_expires_after_its_encoded_time)
{
    for (uint8_t timeout = 1; timeout < 32; timeout++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        struct qp_config config = bench_qp_config;
        config.timeout = timeout;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        bench.fate = lose_requests;
        bench_post(&bench, bench.qp[0], &wqe, VERB_WRITE, 0, 0, 100);
        picoseconds want = (INT64_C(4096) * PS_PER_NS) << timeout;
        bench_run(&bench, want + PS_PER_US);
        EXPECT_EQUAL(2, bench_count(&bench, 0, -1));
        EXPECT_EQUAL(want, bench_find(&bench, 0, -1, 1)->at - bench_find(&bench, 0, -1, 0)->at);
        bench_free(&bench);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

TEST(queue_pair_allows_only_specified_transitions)
{
    /* The state diagram, from the row's state to the column's: RESET INIT RTR RTS SQD SQE ERR. */
    static const char *const steps[QP_STATES] = {
        "xx....x", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", "x..x..x", "x.....x",
    };
    for (int from = 0; from < QP_STATES; from++)
        for (int to = 0; to < QP_STATES; to++) {
            struct bench bench;
            bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
            bench.qp[0]->state = (enum qp_state)from;
            bool allowed = steps[from][to] == 'x';
            EXPECT_EQUAL(allowed, qp_modify(bench.qp[0], (enum qp_state)to, 0));
            EXPECT_EQUAL(allowed ? to : from, (int)qp_state(bench.qp[0]));
            bench_free(&bench);
        }
}

TEST(post_in_a_wrong_state_fails_without_side_effects)
{
    static const enum status posted[QP_STATES] = {
        [QP_RESET] = STATUS_LOC_QP_OP_ERR, [QP_INIT] = STATUS_LOC_QP_OP_ERR,
        [QP_RTR] = STATUS_LOC_QP_OP_ERR,   [QP_RTS] = STATUS_SUCCESS,
        [QP_SQD] = STATUS_PENDING,         [QP_SQE] = STATUS_WR_FLUSH_ERR,
        [QP_ERR] = STATUS_WR_FLUSH_ERR,
    };
    static const enum status received[QP_STATES] = {
        [QP_RESET] = STATUS_LOC_QP_OP_ERR, [QP_INIT] = STATUS_PENDING, [QP_RTR] = STATUS_PENDING,
        [QP_RTS] = STATUS_PENDING,         [QP_SQD] = STATUS_PENDING,  [QP_SQE] = STATUS_PENDING,
        [QP_ERR] = STATUS_WR_FLUSH_ERR,
    };
    for (int state = 0; state < QP_STATES; state++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        struct receive receive;
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        bench.qp[0]->state = (enum qp_state)state;
        bench_post(&bench, bench.qp[0], &wqe, VERB_WRITE, 0, 0, 100);
        bench_receive(&bench, bench.qp[0], &receive, 0, 100);
        bench_run(&bench, 100 * PS_PER_US);
        EXPECT_EQUAL(posted[state], wqe.record.status);
        EXPECT_EQUAL(received[state], receive.status);
        EXPECT_EQUAL(state == QP_RTS, bench_count(&bench, 0, -1));
        EXPECT_EQUAL(state, (int)bench.qp[0]->state);
        bench_free(&bench);
    }
}

TEST(invalid_work_request_fails_without_side_effects)
{
    static const struct {
        int transport;
        enum verb verb;
        uint32_t from, length;
        enum status status;
    } wrong[] = {
        {TRANSPORT_RC, VERBS, 0, 8, STATUS_LOC_QP_OP_ERR},
        {TRANSPORT_RC, VERB_WRITE, MEMORY, 1, STATUS_LOC_PROT_ERR},
        {TRANSPORT_RC, VERB_SEND, MEMORY - 9, 10, STATUS_LOC_PROT_ERR},
        {TRANSPORT_RC, VERB_WRITE, 0, MESSAGE_MAX + 1, STATUS_LOC_LEN_ERR},
        {TRANSPORT_RC, VERB_FETCH_ADD, 0, 4, STATUS_LOC_LEN_ERR},
        {TRANSPORT_RC, VERB_CMP_SWAP, 0, 16, STATUS_LOC_LEN_ERR},
        {TRANSPORT_UC, VERB_READ, 0, 8, STATUS_LOC_QP_OP_ERR},
        {TRANSPORT_UC, VERB_FETCH_ADD, 0, 8, STATUS_LOC_QP_OP_ERR},
        {TRANSPORT_UC, VERB_SEND_INV, 0, 8, STATUS_LOC_QP_OP_ERR},
        {TRANSPORT_UD, VERB_WRITE, 0, 8, STATUS_LOC_QP_OP_ERR},
        {TRANSPORT_UD, VERB_SEND, 0, 8, STATUS_LOC_QP_OP_ERR}, /* without a destination */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bench bench;
        struct test_wqe wqe = {0}, right = {0};
        struct qp_config config = bench_qp_config;
        config.transport = wrong[i].transport;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        bench_post(&bench, bench.qp[0], &wqe, wrong[i].verb, wrong[i].from, 0, wrong[i].length);
        EXPECT_EQUAL(wrong[i].status, wqe.record.status);
        EXPECT_EQUAL(QP_RTS, bench.qp[0]->state);
        EXPECT_EQUAL(NEVER, bench.qp[0]->requester.ack_timeout.at);
        bench_run(&bench, 100 * PS_PER_US);
        EXPECT_EQUAL(0, bench_count(&bench, 0, -1));
        if (config.transport == TRANSPORT_RC) {
            bench_write(&bench, bench.qp[0], &right, 0, 0, 10);
            bench_run(&bench, 100 * PS_PER_US);
            EXPECT_EQUAL(STATUS_SUCCESS, right.record.status);
        }
        bench_free(&bench);
    }
}

MAIN(RUN(every_request_gets_the_specified_answer), RUN(every_answer_has_the_specified_effect),
     RUN(rnr_nak_delays_the_retry_by_its_timer_code),
     RUN(ack_timeout_expires_after_its_encoded_time),
     RUN(queue_pair_allows_only_specified_transitions),
     RUN(post_in_a_wrong_state_fails_without_side_effects),
     RUN(invalid_work_request_fails_without_side_effects))
