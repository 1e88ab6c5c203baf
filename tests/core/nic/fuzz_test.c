/* Arbitrary bytes never crash a NIC and never change memory outside of the sinks; every frame is
 * counted exactly once. */
#include <string.h>

#include "nic/psn.h"
#include "testbench.h"

enum { ROUNDS = 50000, BODY_MAX = BTH_BYTES + RETH_BYTES + 1100, WQES = 4 };

static uint32_t below(struct bench *bench, uint32_t bound)
{
    return rng_u32(&bench->rng) % bound;
}

/* Recovers a failed queue pair and expects the PSN that the other end sends next, so that the
 * following frames reach a working queue pair. */
static void revive(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    if (qp->state == QP_ERR) {
        qp->state = QP_RTS;
        requester->unacked = requester->next = requester->posted_end;
        requester->sent_end = requester->awaited_end = requester->posted_end;
    }
    qp->responder.in_message = false;
    qp->responder.remaining = 0;
    qp->responder.expected = (uint32_t)qp->peer->requester.unacked & PSN_MASK;
}

static void keep_busy(struct bench *bench, struct test_wqe wqes[2][WQES], struct receive *receives)
{
    for (int side = 0; side < 2; side++) {
        revive(bench->qp[side]);
        if (!bench->qp[side]->responder.own.first)
            bench_receive(bench, bench->qp[side], &receives[side], 0, 3000);
        for (uint32_t i = 0; i < WQES; i++)
            if (wqes[side][i].record.status != STATUS_PENDING)
                bench_write(bench, bench->qp[side], &wqes[side][i], 0, 0, below(bench, 20000));
    }
}

/* Makes a packet that is mostly what a queue pair expects, with errors. */
static uint32_t random_body(struct bench *bench, int receiver, uint8_t *body)
{
    static const uint8_t opcodes[] = {0, 1, 2, 4, 6, 7, 8, 10, 17, 0x81};
    const struct qp *qp = bench->qp[receiver];
    uint32_t psn = below(bench, 2) ? qp->responder.expected : (uint32_t)qp->requester.unacked;
    struct bth bth = {.opcode = opcodes[below(bench, sizeof opcodes)],
                      .pad = (uint8_t)(below(bench, 4) ? 0 : below(bench, 4)),
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = qp->qpn,
                      .ack_req = below(bench, 2),
                      .psn = (psn + below(bench, 4) - 1) & PSN_MASK};
    struct reth reth = {.va = FIRST_VA + below(bench, MEMORY),
                        .rkey = bench->sink_key[receiver],
                        .dma_length = below(bench, 3000)};
    uint32_t length = BTH_BYTES + 4 * below(bench, (BODY_MAX - BTH_BYTES) / 4);
    if (below(bench, 4) == 0)
        length = BTH_BYTES + RETH_BYTES + bench_qp_config.mtu;
    for (uint32_t i = 0; i < length; i++)
        body[i] = (uint8_t)rng_u32(&bench->rng);
    bth_write(body, &bth);
    if (length >= BTH_BYTES + RETH_BYTES && below(bench, 2))
        reth_write(body + BTH_BYTES, &reth);
    for (uint32_t flips = below(bench, 3); flips > 0; flips--)
        body[below(bench, 8)] ^= (uint8_t)(1u << below(bench, 8));
    return length;
}

static void give_random_frame(struct bench *bench, int receiver)
{
    struct nic *nic = &bench->nic[receiver];
    struct frame *frame = frame_new(&bench->pool, nic->framing->kind, below(bench, 300));
    for (uint32_t i = 0; i < frame->length; i++)
        frame->bytes[i] = (uint8_t)rng_u32(&bench->rng);
    port_deliver(&nic->port, frame, bench->clock.now);
}

static enum fate mutate_some(struct bench *bench, const struct packet_record *packet)
{
    (void)packet;
    return below(bench, 20) ? PASS : (enum fate)(DROP + below(bench, 4));
}

static uint64_t frames_received(const struct nic *nic)
{
    uint64_t frames = 0;
    for (int tc = 0; tc < CLASSES; tc++)
        frames += nic->port.traffic[tc].rx_packets;
    return frames - nic->port.counters->rx_credit_violations;
}

TEST(any_packet_with_valid_crcs_is_harmless)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        struct test_wqe wqes[2][WQES] = {0};
        struct receive receives[2];
        uint8_t body[BODY_MAX];
        bench_init(&bench, bench_framings[f], &bench_qp_config);
        bench.fate = mutate_some;
        for (int round = 0; round < ROUNDS; round++) {
            if (round % 16 == 0)
                keep_busy(&bench, wqes, receives);
            int receiver = round % 2;
            if (below(&bench, 8) == 0)
                give_random_frame(&bench, receiver);
            else
                bench_inject(&bench, receiver, body, random_body(&bench, receiver, body));
            bench_run(&bench, below(&bench, 300) * PS_PER_NS);
        }
        bench_run(&bench, 100 * PS_PER_MS);
        for (int side = 0; side < 2; side++) {
            const struct nic *nic = &bench.nic[side];
            EXPECT(bench_untouched(&bench, side, 0, MEMORY));
            EXPECT_EQUAL(frames_received(nic), bench_dropped(nic) + nic->counters.rx_packets);
            EXPECT(nic->counters.resp_invalid_request > 0);
            EXPECT(nic->counters.duplicate_request > 0);
        }
        bench_free(&bench);
    }
}

/* Opens a frame in memory of exactly its length, so that the sanitizer detects reads beyond it. */
static enum verdict open_exactly(const struct nic *nic, const uint8_t *bytes, uint32_t length)
{
    uint8_t *exact = malloc(length + !length);
    if (length)
        memcpy(exact, bytes, length);
    struct frame frame = {
        .kind = nic->framing->kind, .bytes = exact, .length = length, .stored = (uint16_t)length};
    struct packet packet;
    enum verdict verdict = nic->framing->open(&nic->config, &frame, &packet);
    if (verdict == VERDICT_OK)
        EXPECT(packet.payload + packet.payload_bytes <= exact + length);
    free(exact);
    return verdict;
}

/* Builds a packet of `body_bytes` from the BTH on, with this opcode and valid CRCs, in `bytes`.
 * Returns its length. */
static uint32_t seal_body(struct bench *bench, uint8_t opcode, uint32_t body_bytes, uint8_t *bytes)
{
    struct frame *frame = nic_frame(&bench->nic[0], body_bytes, 0);
    uint8_t body[BODY_MAX] = {opcode};
    memcpy(nic_frame_body(&bench->nic[0], frame), body, body_bytes);
    bench->nic[0].framing->seal(&bench->qp[0]->path, TRAFFIC_DATA, frame);
    uint32_t length = frame->length;
    memcpy(bytes, frame->bytes, length);
    frame_free(&bench->pool, frame);
    return length;
}

static void use_framing(struct bench *bench, const struct framing_ops *framing)
{
    for (int side = 0; side < 2; side++) {
        struct nic *nic = &bench->nic[side];
        nic->framing = framing;
        nic->config.tagged = framing == &framing_roce_tagged;
        nic->config.guid = 1 + (uint64_t)side;
    }
    struct qp *qp = bench->qp[0];
    struct qp_remote remote = {
        .qpn = qp->peer->qpn, .address = bench->nic[1].config.address, .guid = 2};
    framing->prepare(&qp->path, &bench->nic[0].config, &qp->config, qp->qpn, &remote);
}

/* Packets with headers cut at every byte, and whole packets truncated at every byte. */
TEST(parser_stays_within_packets_of_every_length)
{
    const struct framing_ops *framings[] = {&framing_roce, &framing_roce_tagged, &framing_ib,
                                            &framing_ib_global};
    const uint32_t longest_headers = BTH_BYTES + DETH_BYTES + ATOMIC_ETH_BYTES + IMM_DT_BYTES;
    for (int f = 0; f < 4; f++) {
        struct bench bench;
        uint8_t bytes[SMALL_FRAME];
        bench_init(&bench, bench_framings[f / 2], &bench_qp_config);
        use_framing(&bench, framings[f]);
        const struct nic *receiver = &bench.nic[1];
        uint32_t taken = 0;
        for (int opcode = 0; opcode < 256; opcode++)
            for (uint32_t body = BTH_BYTES; body <= longest_headers; body += 4) {
                uint32_t length = seal_body(&bench, (uint8_t)opcode, body, bytes);
                taken += open_exactly(receiver, bytes, length) == VERDICT_OK;
                EXPECT(open_exactly(receiver, bytes, length) != VERDICT_ICRC);
                for (uint32_t cut = 0; cut < length && body == longest_headers; cut++)
                    EXPECT(open_exactly(receiver, bytes, cut) != VERDICT_OK);
            }
        EXPECT(taken > 256);
        bench_free(&bench);
    }
}

/* Builds a valid frame, for mutation. */
static uint32_t make_frame(struct bench *bench, uint8_t *bytes)
{
    struct qp *qp = bench->qp[0];
    uint32_t payload = 4 * below(bench, 20);
    struct frame *frame = nic_frame(&bench->nic[0], BTH_BYTES, payload);
    uint8_t *body = nic_frame_body(&bench->nic[0], frame);
    struct bth bth = {.opcode = (uint8_t)below(bench, 0x20), .pkey = PKEY_DEFAULT};
    memset(body, 0, BTH_BYTES + payload);
    bth_write(body, &bth);
    qp->nic->framing->seal(&qp->path, TRAFFIC_DATA, frame);
    uint32_t length = frame->length;
    memcpy(bytes, frame->bytes, length);
    frame_free(&bench->pool, frame);
    return length;
}

TEST(parser_stays_within_mutated_frames)
{
    for (int f = 0; f < 2; f++) {
        struct bench bench;
        bench_init(&bench, bench_framings[f], &bench_qp_config);
        const struct nic *receiver = &bench.nic[1];
        uint8_t bytes[SMALL_FRAME];
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t length = make_frame(&bench, bytes);
            for (uint32_t flips = below(&bench, 4); flips > 0; flips--)
                bytes[below(&bench, below(&bench, 2) ? length : 50)] ^=
                    (uint8_t)(1u << below(&bench, 8));
            if (below(&bench, 2))
                length = below(&bench, length + 1);
            open_exactly(receiver, bytes, length);
        }
        bench_free(&bench);
    }
}

MAIN(RUN(any_packet_with_valid_crcs_is_harmless), RUN(parser_stays_within_mutated_frames),
     RUN(parser_stays_within_packets_of_every_length))
