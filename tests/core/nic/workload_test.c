/* Graphs of operations: when each operation starts, and its record. */
#include "testbench.h"

enum { MAX_OPERATIONS = 64 };

struct plan {
    struct bench bench;
    struct operation operations[MAX_OPERATIONS];
    uint32_t dependents[MAX_OPERATIONS], count, dependent_count;
    struct workload *workload;
    const struct message_record *records;
};

static struct workload *plan_load(struct plan *plan)
{
    struct clock *const clocks[2] = {&plan->bench.clock, &plan->bench.clock};
    return workload_new(&(struct workload_config){.operations = plan->operations,
                                                  .count = plan->count,
                                                  .dependents = plan->dependents,
                                                  .dependent_count = plan->dependent_count,
                                                  .flow_count = 2,
                                                  .device_count = 2,
                                                  .clocks = clocks,
                                                  .host_count = 2,
                                                  .delivery_limit_ps = PS_PER_MS});
}

static void plan_init(struct plan *plan, enum framing framing)
{
    *plan = (struct plan){0};
    bench_init(&plan->bench, framing, &bench_qp_config);
}

/* Adds an operation that moves bytes from `side` to its own part of the other sink. */
static void plan_add(struct plan *plan, int side, int verb, uint32_t length)
{
    struct bench *bench = &plan->bench;
    uint32_t place = plan->count * 10000;
    plan->operations[plan->count++] = (struct operation){.qp = bench->qp[side],
                                                         .host = (uint32_t)side,
                                                         .far = (uint32_t)!side,
                                                         .verb = verb,
                                                         .flow = (uint32_t)side,
                                                         .local_va = FIRST_VA + place,
                                                         .lkey = bench->source_key[side],
                                                         .remote_va = FIRST_VA + place,
                                                         .rkey = bench->sink_key[!side],
                                                         .length = length};
}

/* Makes `dependent` depend on the newest operation; call it right after adding that operation. */
static void plan_releases(struct plan *plan, uint32_t dependent)
{
    struct operation *newest = &plan->operations[plan->count - 1];
    if (newest->dependent_count++ == 0)
        newest->first_dependent = plan->dependent_count;
    plan->dependents[plan->dependent_count++] = dependent;
}

static void plan_run(struct plan *plan, picoseconds duration)
{
    plan->workload = plan_load(plan);
    EXPECT(plan->workload);
    plan->records = workload_records(plan->workload);
    workload_start(plan->workload);
    bench_run(&plan->bench, duration);
}

static void plan_free(struct plan *plan)
{
    workload_free(plan->workload);
    bench_free(&plan->bench);
}

static void expect_finished(const struct plan *plan)
{
    EXPECT(workload_is_finished(plan->workload, plan->bench.clock.now));
    EXPECT_EQUAL(0, workload_remaining(plan->workload));
}

TEST(operation_starts_when_its_predecessor_completes)
{
    for (int f = 0; f < 2; f++) {
        struct plan plan;
        plan_init(&plan, bench_framings[f]);
        for (uint32_t i = 0; i < 5; i++) {
            plan_add(&plan, 0, i % 2 ? VERB_SEND : VERB_WRITE, 5000 + i);
            if (i < 4)
                plan_releases(&plan, i + 1);
        }
        plan_run(&plan, PS_PER_MS);
        expect_finished(&plan);
        for (uint32_t i = 0; i < 5; i++) {
            EXPECT_EQUAL(STATUS_SUCCESS, plan.records[i].status);
            EXPECT(bench_arrived(&plan.bench, 1, i * 10000, i * 10000, 5000 + i));
            if (i)
                EXPECT_EQUAL(plan.records[i - 1].completed_ps, plan.records[i].started_ps);
        }
        EXPECT_EQUAL(5 * 5000 + 10, workload_delivered(plan.workload)[0]);
        EXPECT_EQUAL(0, workload_delivered(plan.workload)[1]);
        plan_free(&plan);
    }
}

TEST(receiver_answers_when_the_message_is_delivered)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 5000);
    plan_releases(&plan, 1);
    plan_add(&plan, 1, VERB_WRITE, 3000);
    plan_releases(&plan, 2);
    plan_add(&plan, 0, VERB_SEND, 0);
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(plan.records[0].delivered_ps, plan.records[1].started_ps);
    EXPECT_EQUAL(plan.records[1].delivered_ps, plan.records[2].started_ps);
    EXPECT(plan.records[0].delivered_ps < plan.records[0].completed_ps);
    EXPECT_EQUAL(3000, workload_delivered(plan.workload)[1]);
    plan_free(&plan);
}

TEST(operation_waits_for_all_predecessors_and_its_time)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 9000);
    plan_releases(&plan, 2);
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan_releases(&plan, 2);
    plan.operations[1].not_before_ps = 20 * PS_PER_US;
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan_releases(&plan, 3);
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan.operations[3].not_before_ps = 50 * PS_PER_US;
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(0, plan.records[0].started_ps);
    EXPECT_EQUAL(20 * PS_PER_US, plan.records[1].started_ps);
    EXPECT_EQUAL(plan.records[1].completed_ps, plan.records[2].started_ps);
    EXPECT_EQUAL(50 * PS_PER_US, plan.records[3].started_ps);
    plan_free(&plan);
}

TEST(progress_can_be_read_during_the_run)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 900000);
    plan_run(&plan, 30 * PS_PER_US);
    uint64_t early = workload_delivered(plan.workload)[0];
    EXPECT(early > 300000 && early < 400000 && early % 1024 == 0);
    EXPECT_EQUAL(early, plan.records[0].delivered_bytes);
    EXPECT_EQUAL(1, workload_remaining(plan.workload));
    EXPECT(!workload_is_finished(plan.workload, plan.bench.clock.now));
    plan_free(&plan);
}

TEST(retransmissions_are_recorded_per_operation)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 4096);
    plan_add(&plan, 0, VERB_WRITE, 4096);
    plan.bench.plan[0][5] = DROP;
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(0, plan.records[0].retransmitted_packets);
    EXPECT_EQUAL(3, plan.records[1].retransmitted_packets);
    plan_free(&plan);
}

TEST(dependents_of_a_failed_operation_are_cancelled)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 1, VERB_WRITE, 100); /* succeeds before the other direction fails */
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan_releases(&plan, 2);
    plan_releases(&plan, 3);
    plan.operations[1].not_before_ps = 10 * PS_PER_US;
    plan.operations[1].rkey ^= 1;
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan_releases(&plan, 3);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(STATUS_SUCCESS, plan.records[0].status);
    EXPECT_EQUAL(STATUS_REM_ACCESS_ERR, plan.records[1].status);
    EXPECT_EQUAL(STATUS_CANCELLED, plan.records[2].status);
    EXPECT_EQUAL(STATUS_CANCELLED, plan.records[3].status);
    EXPECT_EQUAL(NEVER, plan.records[3].started_ps);
    plan_free(&plan);
}

TEST(operation_past_its_deadline_is_skipped_with_dependents)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 9000);
    plan_releases(&plan, 1);
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan.operations[1].not_after_ps = PS_PER_US / 10;
    plan_releases(&plan, 2);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan_add(&plan, 0, VERB_WRITE, 100); /* exactly at its deadline */
    plan.operations[3].not_before_ps = plan.operations[3].not_after_ps = 20 * PS_PER_US;
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(STATUS_SUCCESS, plan.records[0].status);
    EXPECT_EQUAL(STATUS_SKIPPED, plan.records[1].status);
    EXPECT_EQUAL(STATUS_SKIPPED, plan.records[2].status);
    EXPECT_EQUAL(STATUS_SUCCESS, plan.records[3].status);
    EXPECT_EQUAL(NEVER, plan.records[2].started_ps);
    EXPECT_EQUAL(9100, workload_delivered(plan.workload)[0]);
    plan_free(&plan);
}

static enum fate lose_acks(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return packet->from == 1 && packet->bth.opcode == OPCODE_ACKNOWLEDGE ? DROP : PASS;
}

static enum fate lose_requests(struct bench *bench, const struct packet_record *packet)
{
    (void)bench;
    return packet->from == 0 ? DROP : PASS;
}

TEST(operation_released_by_a_delivery_is_not_cancelled)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan.bench.fate = lose_acks;
    plan_add(&plan, 0, VERB_WRITE, 100); /* delivered, but the sender receives no ACK */
    plan_releases(&plan, 1);
    plan_releases(&plan, 2);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan.operations[1].not_before_ps = 20 * PS_PER_MS;
    plan_add(&plan, 0, VERB_WRITE, 100);
    plan_run(&plan, 100 * PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, plan.records[0].status);
    EXPECT(plan.records[0].delivered_ps < PS_PER_MS);
    EXPECT_EQUAL(20 * PS_PER_MS, plan.records[1].started_ps);
    EXPECT_EQUAL(STATUS_CANCELLED, plan.records[2].status);
    plan_free(&plan);
}

/* The packet of the only WRITE of 4 bytes, which was on its way longer than its sender waited. */
static void inject_late_write(struct plan *plan)
{
    const struct bench *bench = &plan->bench;
    uint8_t body[BTH_BYTES + RETH_BYTES + 4] = {0};
    struct bth bth = {.opcode = OPCODE_WRITE_ONLY,
                      .mig_req = true,
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = bench->qp[1]->qpn,
                      .ack_req = true,
                      .psn = bench->qp[1]->responder.expected};
    struct reth reth = {.va = FIRST_VA, .rkey = bench->sink_key[1], .dma_length = 4};
    bth_write(body, &bth);
    reth_write(body + BTH_BYTES, &reth);
    bench_inject(&plan->bench, 1, body, sizeof body);
}

TEST(operation_starts_when_a_message_is_delivered_after_its_failure)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan.bench.fate = lose_requests;
    plan_add(&plan, 0, VERB_WRITE, 4);
    plan_releases(&plan, 1);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan_releases(&plan, 2);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan_run(&plan, 100 * PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(STATUS_RETRY_EXC_ERR, plan.records[0].status);
    EXPECT_EQUAL(STATUS_CANCELLED, plan.records[1].status);
    EXPECT_EQUAL(STATUS_CANCELLED, plan.records[2].status);
    EXPECT_EQUAL(plan.records[0].completed_ps, plan.records[2].completed_ps);
    picoseconds late = plan.bench.clock.now;
    inject_late_write(&plan);
    EXPECT_EQUAL(1, workload_remaining(plan.workload));
    EXPECT_EQUAL(late, plan.records[0].delivered_ps);
    EXPECT_EQUAL(late, plan.records[1].started_ps);
    EXPECT_EQUAL(STATUS_PENDING, plan.records[1].status);
    plan_free(&plan);
}

static void expect_rejected(struct plan *plan)
{
    EXPECT(!plan_load(plan));
}

static float *floats(uint8_t *memory, uint32_t place)
{
    return (float *)(memory + place);
}

TEST(summand_is_added_once_when_fully_delivered)
{
    enum { FLOATS = 3000, SUM = 500000 };
    for (int f = 0; f < 2; f++) {
        struct plan plan;
        plan_init(&plan, bench_framings[f]);
        plan.bench.plan[0][1] = DROP;
        for (int i = 0; i < FLOATS; i++) {
            floats(plan.bench.source[0], 0)[i] = (float)i;
            floats(plan.bench.sink[1], SUM)[i] = 0.5F;
        }
        plan_add(&plan, 0, VERB_WRITE, FLOATS * sizeof(float));
        plan.operations[0].sum_key = plan.bench.sink_key[1];
        plan.operations[0].sum_va = FIRST_VA + SUM;
        plan_run(&plan, PS_PER_MS);
        expect_finished(&plan);
        EXPECT(plan.records[0].retransmitted_packets > 0);
        for (int i = 0; i < FLOATS; i++)
            EXPECT(floats(plan.bench.sink[1], SUM)[i] == (float)i + 0.5F);
        plan_free(&plan);
    }
}

TEST(dependents_of_work_start_when_it_ends)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_WRITE, 5000);
    plan_releases(&plan, 1);
    plan.operations[plan.count++] =
        (struct operation){.host = 1, .far = 1, .flow = 1, .duration_ps = 7 * PS_PER_US};
    plan_releases(&plan, 2);
    plan_add(&plan, 1, VERB_WRITE, 100);
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(plan.records[0].delivered_ps, plan.records[1].started_ps);
    EXPECT_EQUAL(plan.records[1].started_ps + 7 * PS_PER_US, plan.records[1].completed_ps);
    EXPECT_EQUAL(STATUS_SUCCESS, plan.records[1].status);
    EXPECT_EQUAL(plan.records[1].completed_ps, plan.records[2].started_ps);
    plan_free(&plan);
}

/* Adds an operation that uses a device exclusively for 2 us and then works for 7 us. */
static void plan_add_at_device(struct plan *plan, uint32_t device)
{
    plan->operations[plan->count++] = (struct operation){.host = 1,
                                                         .far = 1,
                                                         .flow = 1,
                                                         .duration_ps = 7 * PS_PER_US,
                                                         .device = device,
                                                         .busy_ps = 2 * PS_PER_US};
}

TEST(device_serves_operations_one_at_a_time)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    for (int i = 0; i < 3; i++)
        plan_add_at_device(&plan, 0);
    plan_add_at_device(&plan, 1);
    plan.operations[plan.count++] =
        (struct operation){.host = 1, .far = 1, .flow = 1, .duration_ps = PS_PER_US};
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    static const picoseconds over_us[] = {9, 11, 13, 9, 1};
    for (int i = 0; i < 5; i++) {
        EXPECT_EQUAL(0, plan.records[i].started_ps);
        EXPECT_EQUAL(over_us[i] * PS_PER_US, plan.records[i].completed_ps);
    }
    plan_free(&plan);
}

TEST(idle_device_serves_at_once)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add_at_device(&plan, 0);
    plan_releases(&plan, 1);
    plan_add_at_device(&plan, 0);
    plan_run(&plan, PS_PER_MS);
    expect_finished(&plan);
    EXPECT_EQUAL(18 * PS_PER_US, plan.records[1].completed_ps);
    plan_free(&plan);
}

TEST(invalid_table_makes_no_workload)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_add(&plan, 0, VERB_SEND, 100);
    plan_releases(&plan, 0);
    struct operation right = plan.operations[0], *operation = &plan.operations[0];
    plan.dependents[0] = 1;
    expect_rejected(&plan);
    plan.dependents[0] = 0;
    operation->dependent_count = 2;
    expect_rejected(&plan);
    *operation = right;
    operation->first_dependent = UINT32_MAX;
    expect_rejected(&plan);
    *operation = right;
    operation->flow = 2;
    expect_rejected(&plan);
    *operation = right;
    operation->verb = VERBS;
    expect_rejected(&plan);
    *operation = right;
    operation->device = 2;
    expect_rejected(&plan);
    *operation = right;
    operation->local_va += MEMORY;
    expect_rejected(&plan);
    *operation = right;
    operation->rkey ^= 1;
    expect_rejected(&plan);
    *operation = right;
    operation->sum_key = right.rkey ^ 1;
    expect_rejected(&plan);
    operation->sum_key = right.rkey;
    operation->sum_va = right.remote_va + MEMORY;
    expect_rejected(&plan);
    operation->sum_va = right.remote_va;
    operation->length = 99; /* not a multiple of a float32 */
    expect_rejected(&plan);
    plan_free(&plan);
}

TEST(empty_workload_is_finished)
{
    struct plan plan;
    plan_init(&plan, FRAMING_ETHERNET);
    plan_run(&plan, 0);
    expect_finished(&plan);
    plan_free(&plan);
}

MAIN(RUN(operation_starts_when_its_predecessor_completes),
     RUN(receiver_answers_when_the_message_is_delivered),
     RUN(operation_waits_for_all_predecessors_and_its_time),
     RUN(progress_can_be_read_during_the_run), RUN(retransmissions_are_recorded_per_operation),
     RUN(dependents_of_a_failed_operation_are_cancelled),
     RUN(operation_past_its_deadline_is_skipped_with_dependents),
     RUN(operation_released_by_a_delivery_is_not_cancelled),
     RUN(operation_starts_when_a_message_is_delivered_after_its_failure),
     RUN(summand_is_added_once_when_fully_delivered), RUN(dependents_of_work_start_when_it_ends),
     RUN(device_serves_operations_one_at_a_time), RUN(idle_device_serves_at_once),
     RUN(invalid_table_makes_no_workload), RUN(empty_workload_is_finished))
