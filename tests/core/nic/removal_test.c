/* Queue pairs and queues that end before their NIC, at any time. */
#include <string.h>

#include "link/pauses.h"
#include "nic/qp_table.h"
#include "nic/verbs_api.h"
#include "programs.h"

enum { LENGTH = 100 * 1024, ROUNDS = 10000 };

static const char *const recoveries[] = {"go-back-n", "go-back-0", "selective-repeat"};

static struct qp_config config_of(const char *recovery)
{
    struct qp_config config = bench_qp_config;
    config.recovery = recovery;
    config.window = 64;
    return config;
}

static void submit_write(struct program *program, uint32_t length)
{
    struct sge sge = source_sge(program, 0, length);
    struct send_request request = request_of(program, VERB_WRITE, 1, &sge, 1, 0);
    EXPECT(program_submit(program, &request));
}

static void end_all(struct bench *bench)
{
    bench_run(bench, 20 * PS_PER_MS);
    EXPECT_EQUAL(0, bench->pool.in_use);
    bench_free(bench);
}

/* No timer of a list lies in these bytes, nor in memory that was given back. */
static void expect_none_in(const struct timer *first, const void *from, size_t bytes)
{
    for (const struct timer *timer = first; timer; timer = timer->next)
        EXPECT(timer->fire && (uintptr_t)timer - (uintptr_t)from >= bytes);
}

static void expect_no_timer_in(const struct clock *clock, const void *from, size_t bytes)
{
    expect_none_in(clock->present, from, bytes);
    for (int wheel = 0; wheel < WHEELS; wheel++)
        for (int slot = 0; slot < SLOTS; slot++)
            expect_none_in(clock->wheels[wheel].first[slot], from, bytes);
}

/* A message from program 0 to program 1, and another behind it. */
static void begin_messages(struct program programs[2], enum verb verb)
{
    struct sge here = source_sge(&programs[0], 0, LENGTH),
               there = sink_sge(&programs[1], 0, LENGTH);
    if (verb == VERB_READ)
        here = sink_sge(&programs[0], 0, LENGTH);
    struct send_request request = request_of(&programs[0], verb, 1, &here, 1, 0);
    EXPECT(verbs_submit_recv(programs[1].verbs, 2, &there, 1, 0));
    EXPECT(program_submit(&programs[0], &request));
    EXPECT(program_submit(&programs[0], &request));
}

static void expect_nothing_after(struct program *program, picoseconds end)
{
    struct work_completion completion;
    while (cq_poll(program->cq, &completion))
        EXPECT(completion.at_ps <= end && completion.status == STATUS_SUCCESS);
}

/* One of two programs removes its queue pair at a time when packets are lost and marked. */
static void remove_at(picoseconds at, int side, enum verb verb, const char *recovery)
{
    struct bench bench;
    struct program programs[2];
    struct qp_config config = config_of(recovery);
    config.cc = bench_dcqcn;
    config.cnp.becn = BECN_IN_CNP;
    bench_init(&bench, FRAMING_ETHERNET, &config);
    bench.plan[0][5] = bench.plan[1][5] = DROP;
    bench.plan[0][7] = bench.plan[1][7] = MARK;
    programs_connect(programs, &bench, &config);
    begin_messages(programs, verb);
    bench_run(&bench, at);
    nic_remove_qp(&bench.nic[side], programs[side].qp, bench.clock.now);
    expect_no_timer_in(&bench.clock, programs[side].qp, sizeof(struct qp));
    bench_run(&bench, PS_PER_MS);
    expect_nothing_after(&programs[side], at);
    verbs_qp_free(programs[side].verbs);
    cq_free(programs[side].cq);
    program_end(&programs[!side]);
    end_all(&bench);
}

TEST(removed_queue_pair_completes_nothing)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_WRITE, VERB_READ};
    for (int r = 0; r < 3; r++)
        for (int v = 0; v < 3; v++)
            for (int side = 0; side < 2; side++)
                for (picoseconds at = 0; at < 20 * PS_PER_US; at += 1700 * PS_PER_NS)
                    remove_at(at, side, verbs[v], recoveries[r]);
}

/* Creates, connects, uses and removes a pair of queue pairs. Returns the number of one. */
static uint32_t come_and_go(struct bench *bench, const struct qp_config *config, bool ends_early)
{
    struct program programs[2];
    programs_connect(programs, bench, config);
    uint32_t number = qp_number(programs[0].qp);
    submit_write(&programs[0], 3000);
    bench_run(bench, ends_early ? 1200 * PS_PER_NS : 10 * PS_PER_US);
    if (!ends_early)
        EXPECT_COMPLETION(&programs[0], 1, STATUS_SUCCESS);
    program_end(&programs[0]);
    program_end(&programs[1]);
    return number;
}

static void expect_constant_memory(const struct qp_config *config)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, config);
    come_and_go(&bench, config, false);
    const uint8_t *fresh = bench.arena.fresh;
    const struct arena_chunk *chunks = bench.arena.chunks;
    for (int round = 0; round < ROUNDS; round++) {
        bench.packet_count = 0;
        come_and_go(&bench, config, round % 2);
    }
    EXPECT(bench.arena.fresh == fresh && bench.arena.chunks == chunks);
    end_all(&bench);
}

TEST(queue_pairs_come_and_go_in_constant_memory)
{
    struct qp_config config = config_of("go-back-n");
    config.cc = bench_dcqcn;
    expect_constant_memory(&config);
}

TEST(selective_repeat_comes_and_goes_in_constant_memory)
{
    struct qp_config config = config_of("selective-repeat");
    config.window = 16;
    expect_constant_memory(&config);
}

#define REAL(parameter, value)                                                                     \
    {                                                                                              \
        .name = parameter, .count = 1, .reals = (const double[])                                   \
        {                                                                                          \
            value                                                                                  \
        }                                                                                          \
    }

TEST(measured_round_trips_come_and_go_in_constant_memory)
{
    const struct parameter swift[] = {
        REAL("base_target", 20e6), REAL("fs_range", 1e6), REAL("fs_min_cwnd", 0.1),
        REAL("fs_max_cwnd", 100),  REAL("ai", 1),         REAL("beta", 0.5),
        REAL("max_mdf", 0.5),      REAL("min_cwnd", 0.1), REAL("initial_cwnd", 10),
        REAL("max_cwnd", 100)};
    struct qp_config config = config_of("go-back-n");
    config.cc =
        (struct cc_config){.algorithm = "swift", .parameters = swift, .parameter_count = 10};
    expect_constant_memory(&config);
}

TEST(refused_config_takes_no_memory)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp_config config = bench_qp_config;
    config.cc = bench_dcqcn;
    config.cc.parameter_count--;
    EXPECT(!nic_add_qp(&bench.nic[0], &config));
    const uint8_t *fresh = bench.arena.fresh;
    for (int i = 0; i < 100; i++)
        EXPECT(!nic_add_qp(&bench.nic[0], &config));
    EXPECT(bench.arena.fresh == fresh);
    end_all(&bench);
}

TEST(number_is_used_again_only_after_all_others)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    static bool used[1 << 16];
    for (int round = 0; round < 2000; round++) {
        uint32_t number = come_and_go(&bench, &bench_qp_config, true);
        bench.packet_count = 0;
        EXPECT(number < sizeof used && !used[number]);
        used[number] = true;
    }
    struct qp *qps[7];
    for (int i = 0; i < 7; i++) { /* all places but that of the bench's own */
        qps[i] = nic_add_qp(&bench.nic[0], &bench_qp_config);
        EXPECT(qps[i] && qp_numbered(&bench.nic[0], qp_number(qps[i])) == qps[i]);
    }
    EXPECT(!nic_add_qp(&bench.nic[0], &bench_qp_config));
    nic_remove_qp(&bench.nic[0], qps[3], bench.clock.now);
    EXPECT(nic_add_qp(&bench.nic[0], &bench_qp_config) == qps[3]);
    end_all(&bench);
}

TEST(numbers_begin_again_after_the_last)
{
    enum { FIRST = FIRST_QPN + 1, LATE = 0xFFFFF0 };
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct nic *nic = &bench.nic[0];
    nic->config.max_qps = 2;
    uint32_t expected = FIRST;
    for (int round = 0; round < 20; round++) {
        struct qp *qp = nic_add_qp(nic, &bench_qp_config);
        EXPECT_EQUAL(expected, qp_number(qp));
        EXPECT(qp_numbered(nic, expected) == qp);
        nic_remove_qp(nic, qp, 0);
        EXPECT(!qp_numbered(nic, expected));
        if (round == 3)
            nic->qps[1].qpn = expected = LATE; /* as if there had been millions */
        expected = expected + 2 < 0xFFFFFF ? expected + 2 : FIRST;
    }
    EXPECT(expected < 100);
    end_all(&bench);
}

TEST(late_packets_do_not_reach_a_new_queue_pair)
{
    struct bench bench;
    struct program old[2], young[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(old, &bench, &bench_qp_config);
    bench.nic[1].config.max_qps = 2; /* the new one takes the old one's place */
    submit_write(&old[0], LENGTH);
    bench_run(&bench, 5 * PS_PER_US);
    program_end(&old[1]);
    programs_connect(young, &bench, &bench_qp_config);
    EXPECT(young[1].qp == old[1].qp);
    uint8_t *before = malloc(MEMORY);
    memcpy(before, bench.sink[1], MEMORY);
    bench_run(&bench, 20 * PS_PER_US);
    EXPECT(memcmp(before, bench.sink[1], MEMORY) == 0);
    EXPECT(nic_counters(&bench.nic[1])->rx_unknown_qp > 5);
    submit_write(&young[0], LENGTH);
    bench_run(&bench, 100 * PS_PER_MS);
    EXPECT_COMPLETION(&young[0], 1, STATUS_SUCCESS);
    EXPECT_COMPLETION(&old[0], 1, STATUS_RETRY_EXC_ERR);
    EXPECT(bench_arrived(&bench, 1, 0, 0, LENGTH));
    program_end(&old[0]);
    program_end(&young[0]);
    program_end(&young[1]);
    free(before);
    end_all(&bench);
}

/* Six queue pairs wait for their turns while the port is paused; the removed ones are left out. */
TEST(removed_queue_pair_loses_its_turn)
{
    for (uint32_t removed = 0; removed < 1 << 6; removed++) {
        struct bench bench;
        struct test_wqe wqes[6] = {0};
        struct qp *qps[6];
        bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
        for (int i = 0; i < 6; i++)
            qps[i] = bench_add_pair(&bench, &bench_qp_config);
        port_pause_peer(&bench.wire[0], 26 >> 3, true, 0);
        bench_run(&bench, 10 * PS_PER_US);
        for (int i = 0; i < 6; i++)
            bench_write(&bench, qps[i], &wqes[i], 0, 0, 2000);
        for (int i = 0; i < 6; i++)
            if (removed & 1u << i) {
                struct qp *other = qps[i]->peer;
                nic_remove_qp(&bench.nic[0], qps[i], bench.clock.now);
                EXPECT(!other->peer && !other->responder.next_expected);
            }
        port_pause_peer(&bench.wire[0], 26 >> 3, false, bench.clock.now);
        bench_run(&bench, PS_PER_MS);
        for (int i = 0; i < 6; i++)
            EXPECT_EQUAL(removed & 1u << i ? STATUS_CANCELLED : STATUS_SUCCESS,
                         wqes[i].record.status);
        end_all(&bench);
    }
}

/* Three senders share the interval between CNPs; marked packets of each go on arriving. */
TEST(shared_cnp_interval_outlives_its_first_owner)
{
    for (int removed = 0; removed < 3; removed++) {
        struct bench bench;
        struct test_wqe wqes[3] = {0};
        struct qp *qps[3];
        struct qp_config config = bench_qp_config;
        config.cnp.becn = BECN_IN_CNP;
        config.cnp.per = CNP_PER_PORT;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        memset(bench.plan[0], MARK, sizeof bench.plan[0]);
        qps[0] = bench.qp[0];
        for (int i = 1; i < 3; i++)
            qps[i] = bench_add_pair(&bench, &config);
        for (int i = 0; i < 3; i++)
            bench_write(&bench, qps[i], &wqes[i], 0, 0, 10 * LENGTH);
        bench_run(&bench, 70 * PS_PER_US);
        EXPECT_EQUAL(2, bench_count(&bench, 1, OPCODE_CNP));
        nic_remove_qp(&bench.nic[1], qps[removed]->peer, bench.clock.now);
        bench_run(&bench, 130 * PS_PER_US);
        uint32_t cnps = bench_count(&bench, 1, OPCODE_CNP);
        EXPECT(cnps >= 3 && cnps <= 4);
        for (uint32_t i = 1; i < cnps; i++)
            EXPECT(bench_find(&bench, 1, OPCODE_CNP, i)->at -
                       bench_find(&bench, 1, OPCODE_CNP, i - 1)->at >=
                   49 * PS_PER_US);
        bench_run(&bench, 100 * PS_PER_MS);
        bench_free(&bench);
    }
}

TEST(queue_pair_that_owes_a_delayed_cnp_can_be_removed)
{
    for (int shared = 0; shared < 2; shared++) {
        struct bench bench;
        struct test_wqe wqe = {0};
        struct qp_config config = bench_qp_config;
        config.cnp.becn = BECN_IN_CNP;
        config.cnp.per = shared ? CNP_PER_PORT : CNP_PER_QP;
        config.cnp.delay_ps = 10 * PS_PER_US;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        struct qp *second = bench_add_pair(&bench, &config);
        memset(bench.plan[0], MARK, sizeof bench.plan[0]);
        bench_write(&bench, second, &wqe, 0, 0, 1000);
        bench_run(&bench, 5 * PS_PER_US);
        EXPECT_EQUAL(STATUS_SUCCESS, wqe.record.status);
        const struct qp *owing = second->peer;
        nic_remove_qp(&bench.nic[1], second->peer, bench.clock.now);
        expect_no_timer_in(&bench.clock, owing, sizeof *owing);
        bench_run(&bench, PS_PER_MS);
        EXPECT_EQUAL(0, bench_count(&bench, 1, OPCODE_CNP));
        end_all(&bench);
    }
}

TEST(shared_receive_in_use_returns_with_its_queue_pair)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect_srq(programs, &bench, &bench_qp_config);
    struct sge from = source_sge(&programs[0], 0, LENGTH), to = sink_sge(&programs[1], 0, LENGTH);
    struct send_request request = request_of(&programs[0], VERB_SEND, 1, &from, 1, 0);
    for (int i = 0; i < WORK_REQUESTS; i++)
        EXPECT(verbs_submit_srq_recv(programs[1].srq, 2, &to, 1));
    EXPECT(!verbs_submit_srq_recv(programs[1].srq, 2, &to, 1));
    EXPECT(program_submit(&programs[0], &request));
    bench_run(&bench, 5 * PS_PER_US);
    EXPECT(!bench_untouched(&bench, 1, 0, 0));
    nic_remove_qp(&bench.nic[1], programs[1].qp, bench.clock.now);
    EXPECT(program_has_nothing(&programs[1]));
    EXPECT(verbs_submit_srq_recv(programs[1].srq, 2, &to, 1));
    EXPECT(!verbs_submit_srq_recv(programs[1].srq, 2, &to, 1));
    verbs_qp_free(programs[1].verbs);
    verbs_srq_free(programs[1].srq);
    cq_free(programs[1].cq);
    program_end(&programs[0]);
    end_all(&bench);
}

TEST(completion_queue_ends_before_its_entries_are_visible)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    for (int i = 0; i < 2; i++)
        bench.nic[i].config.path.completion_ps = 100 * PS_PER_US;
    programs_connect(programs, &bench, &bench_qp_config);
    submit_write(&programs[0], 1000);
    bench_run(&bench, 10 * PS_PER_US);
    EXPECT(program_has_nothing(&programs[0]));
    program_end(&programs[0]);
    program_end(&programs[1]);
    end_all(&bench);
}

TEST(completions_end_with_their_queue_pair)
{
    struct bench bench;
    struct program one[2], other[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(one, &bench, &bench_qp_config);
    programs_connect(other, &bench, &bench_qp_config);
    struct verbs_qp *second =
        verbs_qp_new(other[0].qp, one[0].cq, one[0].cq, WORK_REQUESTS, WORK_REQUESTS, 0);
    struct send_request request = request_of(&other[0], VERB_WRITE, 9, NULL, 0, 0);
    submit_write(&one[0], 1000);
    EXPECT(verbs_submit_send(second, &request, bench.clock.now));
    bench_run(&bench, 10 * PS_PER_US);
    nic_remove_qp(&bench.nic[0], one[0].qp, bench.clock.now);
    verbs_qp_free(one[0].verbs);
    EXPECT_COMPLETION(&one[0], 9, STATUS_SUCCESS);
    EXPECT(program_has_nothing(&one[0]));
    verbs_qp_free(second);
    program_end(&other[0]);
    cq_free(one[0].cq);
    program_end(&one[1]);
    program_end(&other[1]);
    end_all(&bench);
}

MAIN(RUN(removed_queue_pair_completes_nothing), RUN(queue_pairs_come_and_go_in_constant_memory),
     RUN(selective_repeat_comes_and_goes_in_constant_memory),
     RUN(measured_round_trips_come_and_go_in_constant_memory), RUN(refused_config_takes_no_memory),
     RUN(number_is_used_again_only_after_all_others), RUN(numbers_begin_again_after_the_last),
     RUN(late_packets_do_not_reach_a_new_queue_pair), RUN(removed_queue_pair_loses_its_turn),
     RUN(shared_cnp_interval_outlives_its_first_owner),
     RUN(queue_pair_that_owes_a_delayed_cnp_can_be_removed),
     RUN(shared_receive_in_use_returns_with_its_queue_pair),
     RUN(completion_queue_ends_before_its_entries_are_visible),
     RUN(completions_end_with_their_queue_pair))
