/* The verbs interface: requests that are wrong, and what completions say. */
#include <string.h>

#include "headers/lrh.h"
#include "nic/verbs_api.h"
#include "programs.h"

enum { LENGTH = 5000, QKEY = 0x1234 };

static struct qp_config config_of(enum transport transport)
{
    struct qp_config config = bench_qp_config;
    config.transport = (int)transport;
    config.qkey = QKEY;
    return config;
}

static struct send_request datagram(const struct program programs[2], uint64_t wr_id,
                                    const struct sge *sge)
{
    struct send_request request = request_of(&programs[0], VERB_SEND, wr_id, sge, 1, 0);
    request.is_datagram = true;
    request.remote_address = programs[1].bench->nic[1].config.address;
    request.remote_qpn = qp_number(programs[1].qp);
    request.remote_qkey = QKEY;
    return request;
}

static void end_all(struct bench *bench, struct program programs[2])
{
    program_end(&programs[0]);
    program_end(&programs[1]);
    bench_run(bench, 20 * PS_PER_MS);
    EXPECT_EQUAL(0, bench->pool.in_use);
    bench_free(bench);
}

/* ---- wrong requests ------------------------------------------------------------------ */

/* A right request is posted, then the wrong one, then a right one. The wrong one fails when the
 * first is complete, and the third is flushed. */
static void expect_failure_in_turn(struct bench *bench, struct program programs[2],
                                   const struct send_request *right,
                                   const struct send_request *wrong, enum status status)
{
    bool is_reliable = programs[0].qp->config.transport == TRANSPORT_RC;
    EXPECT(verbs_post_send(programs[0].verbs, wrong, bench->clock.now) == (int)status);
    struct send_request requests[] = {*right, *wrong, *right};
    for (uint64_t i = 0; i < 3; i++) {
        requests[i].wr_id = i;
        EXPECT(program_submit(&programs[0], &requests[i]));
    }
    EXPECT(program_has_nothing(&programs[0]));
    bench_run(bench, PS_PER_MS);
    EXPECT_COMPLETION(&programs[0], 0, STATUS_SUCCESS);
    struct work_completion failed = program_poll(&programs[0]);
    EXPECT_EQUAL(1, failed.wr_id);
    EXPECT_EQUAL(status, failed.status);
    EXPECT_EQUAL(wrong->verb, failed.verb);
    EXPECT_COMPLETION(&programs[0], 2, STATUS_WR_FLUSH_ERR);
    EXPECT(program_has_nothing(&programs[0]));
    EXPECT_EQUAL(is_reliable ? QP_ERR : QP_SQE, qp_state(programs[0].qp));
}

/* The one wrong request that a case is about. */
static struct send_request spoil(struct send_request request, int which, struct sge *sge)
{
    *sge = *request.sges;
    request.sges = sge;
    if (which == 0)
        sge->lkey ^= 1;
    else if (which == 1)
        sge->addr = FIRST_VA + MEMORY - sge->length + 1;
    else if (which == 2)
        sge->length = MESSAGE_MAX + 1;
    else
        request.verb = which == 3 ? VERB_FETCH_ADD : VERBS + which;
    return request;
}

static enum status status_of(int which, enum transport transport)
{
    if (which < 2)
        return STATUS_LOC_PROT_ERR;
    bool too_long = which == 2 || (which == 3 && transport == TRANSPORT_RC);
    return too_long ? STATUS_LOC_LEN_ERR : STATUS_LOC_QP_OP_ERR;
}

TEST(wrong_request_fails_in_its_turn)
{
    enum { CASES = 6 };
    static const enum transport transports[] = {TRANSPORT_RC, TRANSPORT_UC, TRANSPORT_UD};
    for (int t = 0; t < 3; t++)
        for (int which = 0; which < CASES; which++) {
            struct bench bench;
            struct program programs[2];
            struct qp_config config = config_of(transports[t]);
            bench_init(&bench, bench_framings[which % 2], &bench_qp_config);
            bench.plan[0][2] = t == 0 ? DROP : PASS;
            programs_connect(programs, &bench, &config);
            struct sge sge = source_sge(&programs[0], 0, t == 2 ? 1000 : LENGTH), wrong_sge;
            struct send_request right = request_of(&programs[0], VERB_WRITE, 0, &sge, 1, 0);
            if (t == 2)
                right = datagram(programs, 0, &sge);
            struct send_request wrong = spoil(right, which, &wrong_sge);
            expect_failure_in_turn(&bench, programs, &right, &wrong,
                                   status_of(which, transports[t]));
            end_all(&bench, programs);
        }
}

TEST(long_datagram_fails_in_its_turn)
{
    struct bench bench;
    struct program programs[2];
    struct qp_config config = config_of(TRANSPORT_UD);
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &config);
    struct sge sge = source_sge(&programs[0], 0, 1024), longer = source_sge(&programs[0], 0, 1025);
    struct send_request right = datagram(programs, 0, &sge), wrong = datagram(programs, 0, &longer);
    expect_failure_in_turn(&bench, programs, &right, &wrong, STATUS_LOC_LEN_ERR);
    end_all(&bench, programs);
}

TEST(wrong_request_does_not_wait_for_a_receive)
{
    struct bench bench;
    struct program programs[2];
    struct qp_config config = bench_qp_config;
    config.credits = true;
    config.max_rd_atomic = 0;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &config);
    struct sge sge = sink_sge(&programs[0], 0, LENGTH);
    struct send_request right = request_of(&programs[0], VERB_WRITE, 0, NULL, 0, 0),
                        wrong = request_of(&programs[0], VERB_READ, 0, &sge, 1, 0);
    expect_failure_in_turn(&bench, programs, &right, &wrong, STATUS_LOC_QP_OP_ERR);
    end_all(&bench, programs);
}

TEST(unreliable_queue_pair_sends_again_after_a_wrong_request)
{
    for (int is_datagram = 0; is_datagram < 2; is_datagram++) {
        struct bench bench;
        struct program programs[2];
        struct qp_config config = config_of(is_datagram ? TRANSPORT_UD : TRANSPORT_UC);
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        programs_connect(programs, &bench, &config);
        struct sge sge = source_sge(&programs[0], 0, 1000), wrong_sge,
                   into = sink_sge(&programs[1], 0, LENGTH);
        struct send_request right = request_of(&programs[0], VERB_SEND, 0, &sge, 1, 0);
        if (is_datagram)
            right = datagram(programs, 0, &sge);
        struct send_request wrong = spoil(right, 0, &wrong_sge);
        EXPECT(program_submit(&programs[0], &wrong));
        for (int i = 0; i < 3; i++)
            EXPECT(program_submit(&programs[0], &right));
        bench_run(&bench, PS_PER_US);
        EXPECT_EQUAL(QP_SQE, qp_state(programs[0].qp));
        EXPECT_COMPLETION(&programs[0], 0, STATUS_LOC_PROT_ERR);
        for (int i = 0; i < 3; i++)
            EXPECT_COMPLETION(&programs[0], 0, STATUS_WR_FLUSH_ERR);
        EXPECT(verbs_modify(programs[0].verbs, QP_RTS, bench.clock.now));
        EXPECT(verbs_submit_recv(programs[1].verbs, 7, &into, 1, bench.clock.now));
        right.wr_id = 5;
        EXPECT(program_submit(&programs[0], &right));
        bench_run(&bench, PS_PER_MS);
        EXPECT_COMPLETION(&programs[0], 5, STATUS_SUCCESS);
        EXPECT_COMPLETION(&programs[1], 7, STATUS_SUCCESS);
        EXPECT(bench_arrived(&bench, 1, 0, is_datagram ? GRH_BYTES : 0, 1000));
        EXPECT_EQUAL(1000, bench_find(&bench, 0, -1, 0)->bth.psn);
        end_all(&bench, programs);
    }
}

TEST(submit_refuses_what_a_driver_refuses)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &bench_qp_config);
    struct verbs_qp *verbs = programs[0].verbs;
    uint8_t bytes[MAX_INLINE + 1] = {0};
    struct sge sges[MAX_SGE + 1];
    for (int i = 0; i <= MAX_SGE; i++)
        sges[i] = sink_sge(&programs[0], 0, 1);
    struct send_request list = request_of(&programs[0], VERB_WRITE, 0, sges, MAX_SGE + 1, 0);
    struct send_request inlined = request_of(&programs[0], VERB_WRITE, 0, NULL, 0, 0);
    inlined.inlined = bytes;
    inlined.inlined_bytes = sizeof bytes;
    EXPECT(!program_submit(&programs[0], &list) && !program_submit(&programs[0], &inlined));
    EXPECT_EQUAL(REFUSED_SGE_COUNT, verbs_post_send(verbs, &list, 0));
    EXPECT_EQUAL(REFUSED_INLINE, verbs_post_send(verbs, &inlined, 0));
    EXPECT(!verbs_submit_recv(verbs, 0, sges, MAX_SGE + 1, 0));
    EXPECT_EQUAL(REFUSED_SGE_COUNT, verbs_post_recv(verbs, 0, sges, MAX_SGE + 1, 0));
    list.sge_count = MAX_SGE;
    for (int i = 0; i < WORK_REQUESTS; i++) {
        EXPECT(program_submit(&programs[0], &list));
        EXPECT(verbs_submit_recv(verbs, 0, sges, MAX_SGE, 0));
    }
    EXPECT(!program_submit(&programs[0], &list));
    EXPECT(!verbs_submit_recv(verbs, 0, sges, MAX_SGE, 0));
    EXPECT(verbs_modify(verbs, QP_RESET, 0));
    EXPECT(!program_submit(&programs[0], &list));
    EXPECT(!verbs_submit_recv(verbs, 0, sges, MAX_SGE, 0));
    EXPECT(verbs_modify(verbs, QP_ERR, 0));
    EXPECT(program_submit(&programs[0], &list));
    EXPECT(verbs_submit_recv(verbs, 1, sges, MAX_SGE, 0));
    EXPECT_COMPLETION(&programs[0], 0, STATUS_WR_FLUSH_ERR);
    EXPECT_COMPLETION(&programs[0], 1, STATUS_WR_FLUSH_ERR);
    end_all(&bench, programs);
}

TEST(wrong_receive_fails_when_a_message_takes_it)
{
    for (int shared = 0; shared < 2; shared++) {
        struct bench bench;
        struct program programs[2];
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        (shared ? programs_connect_srq : programs_connect)(programs, &bench, &bench_qp_config);
        struct sge from = source_sge(&programs[0], 0, LENGTH),
                   to[] = {sink_sge(&programs[1], 0, LENGTH), source_sge(&programs[1], 0, LENGTH)};
        for (uint64_t i = 0; i < 2; i++) /* the second may not be written */
            EXPECT(shared ? verbs_submit_srq_recv(programs[1].srq, 10 + i, &to[i], 1)
                          : verbs_submit_recv(programs[1].verbs, 10 + i, &to[i], 1, 0));
        struct send_request request = request_of(&programs[0], VERB_SEND, 1, &from, 1, 0);
        EXPECT(program_submit(&programs[0], &request));
        request.wr_id = 2;
        EXPECT(program_submit(&programs[0], &request));
        bench_run(&bench, PS_PER_MS);
        EXPECT_COMPLETION(&programs[1], 10, STATUS_SUCCESS);
        EXPECT_COMPLETION(&programs[1], 11, STATUS_LOC_PROT_ERR);
        EXPECT_COMPLETION(&programs[0], 1, STATUS_SUCCESS);
        EXPECT_COMPLETION(&programs[0], 2, STATUS_REM_OP_ERR);
        for (int side = 0; side < 2; side++)
            EXPECT_EQUAL(QP_ERR, qp_state(programs[side].qp));
        EXPECT(bench_arrived(&bench, 1, 0, 0, LENGTH));
        end_all(&bench, programs);
    }
}

/* ---- completions -------------------------------------------------------------------- */

TEST(solicited_event_travels_with_the_message)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_SEND_IMM, VERB_WRITE_IMM, VERB_WRITE};
    for (size_t v = 0; v < 4; v++)
        for (int solicited = 0; solicited < 2; solicited++) {
            struct bench bench;
            struct program programs[2];
            bench_init(&bench, FRAMING_INFINIBAND, &bench_qp_config);
            programs_connect(programs, &bench, &bench_qp_config);
            struct sge from = source_sge(&programs[0], 0, LENGTH),
                       to = sink_sge(&programs[1], 0, LENGTH);
            struct send_request request = request_of(&programs[0], verbs[v], 1, &from, 1, 0);
            request.solicited = solicited;
            EXPECT(verbs_submit_recv(programs[1].verbs, 2, &to, 1, 0));
            EXPECT(program_submit(&programs[0], &request));
            bench_run(&bench, PS_PER_MS);
            bool takes_receive = verbs[v] != VERB_WRITE;
            for (uint32_t i = 0; i < 5; i++)
                EXPECT(bench_find(&bench, 0, -1, i)->bth.solicited ==
                       (i == 4 && solicited && takes_receive));
            EXPECT(!program_poll(&programs[0]).solicited);
            if (takes_receive)
                EXPECT(program_poll(&programs[1]).solicited == solicited);
            end_all(&bench, programs);
        }
}

static struct work_completion receive_datagram(struct bench *bench, uint8_t sl)
{
    struct program programs[2];
    struct qp_config config = config_of(TRANSPORT_UD);
    programs_connect(programs, bench, &config);
    struct sge sge = source_sge(&programs[0], 0, 100), to = sink_sge(&programs[1], 0, 200);
    struct send_request request = datagram(programs, 1, &sge);
    request.sl = sl;
    request.solicited = true;
    request.remote_address += (1u << bench->nic[1].config.lmc) - 1;
    EXPECT(verbs_submit_recv(programs[1].verbs, 2, &to, 1, 0));
    EXPECT(program_submit(&programs[0], &request));
    bench_run(bench, PS_PER_MS);
    struct work_completion completion = program_poll(&programs[1]);
    EXPECT_EQUAL(STATUS_SUCCESS, completion.status);
    EXPECT(completion.solicited);
    EXPECT_EQUAL(qp_number(programs[0].qp), completion.src_qp);
    end_all(bench, programs);
    return completion;
}

TEST(datagram_completion_tells_its_way)
{
    struct bench bench;
    bench_init(&bench, FRAMING_INFINIBAND, &bench_qp_config);
    bench.nic[1].config.lmc = 2; /* LIDs 4 to 7 */
    bench.nic[1].config.address = 4;
    bench.nic[0].config.address = 9;
    struct work_completion completion = receive_datagram(&bench, 6);
    EXPECT_EQUAL(9, completion.slid);
    EXPECT_EQUAL(6, completion.sl);
    EXPECT_EQUAL(3, completion.dlid_path_bits);
    EXPECT_EQUAL(0, completion.wc_flags & WC_GRH);

    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    completion = receive_datagram(&bench, 0);
    EXPECT_EQUAL(WC_GRH, completion.wc_flags & WC_GRH);
    EXPECT_EQUAL(0, completion.slid);
}

MAIN(RUN(wrong_request_fails_in_its_turn), RUN(long_datagram_fails_in_its_turn),
     RUN(wrong_request_does_not_wait_for_a_receive),
     RUN(unreliable_queue_pair_sends_again_after_a_wrong_request),
     RUN(submit_refuses_what_a_driver_refuses), RUN(wrong_receive_fails_when_a_message_takes_it),
     RUN(solicited_event_travels_with_the_message), RUN(datagram_completion_tells_its_way))
