/* Executes a graph of operations, so that nothing but the core runs between
 * one packet and the next.
 *
 * An operation starts when all it waits for is over, and not before its time.
 * What "over" means depends on where it is seen from:
 *
 *     the waiting operation's NIC        waits until the message is
 *     is the receiver of the message     delivered: its bytes are in memory
 *     is its sender, or a third one      completed: it is acknowledged
 *
 * An operation that fails takes all with it that can then never start; they
 * are cancelled, so that a workload always comes to an end. */
#include <stdlib.h>

#include "nic.h"
#include "receive_queue.h"
#include "send_queue.h"

struct task {
    struct workload *workload;
    const struct operation *operation;
    struct message message;
    struct receive receive; /* a SEND's, at the other end */
    struct timer start;
    uint32_t unmet;          /* operations it still waits for */
    struct task *next_ended; /* chains tasks whose dependents are to be cancelled */
};

struct workload {
    struct clock *clock;
    const struct operation *operations;
    const uint32_t *dependents;
    struct task *tasks;
    struct message_record *records;
    uint64_t *delivered; /* bytes, per flow */
    uint32_t count, remaining;
    bool finished;
};

static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now);
static void completed(struct message *message, picoseconds now);
static void start_timer(struct timer *timer, picoseconds now);

static const struct message_handler handler = {.delivered = delivered, .completed = completed};

/* ---- set-up ------------------------------------------------------------------ */

static bool takes_receive(const struct operation *operation)
{
    return operation->verb <= VERB_SEND_INV || operation->verb == VERB_WRITE_IMM;
}

/* What it moves bytes from or to is registered at its NIC; what a SEND's receive writes, at the
 * other. */
static bool memory_is_right(const struct operation *operation)
{
    const struct memory *local = &operation->qp->nic->memory;
    const struct memory *remote = &operation->qp->peer->nic->memory;
    if (operation->length == 0)
        return true;
    uint8_t *bytes;
    uint32_t access = operation->verb >= VERB_READ ? ACCESS_LOCAL_WRITE : 0;
    if (!memory_find(local, operation->qp->config.pd, operation->lkey, operation->local_va,
                     operation->length, access, &bytes))
        return false;
    return !takes_receive(operation) ||
           memory_find(remote, operation->qp->peer->config.pd, operation->rkey,
                       operation->remote_va, operation->length, ACCESS_LOCAL_WRITE, &bytes);
}

static bool operation_is_right(const struct operation *operation, uint32_t dependent_count,
                               uint32_t flow_count)
{
    return operation->qp && operation->qp->peer && operation->flow < flow_count &&
           operation->verb >= 0 && operation->verb < VERBS && operation->length <= MESSAGE_MAX &&
           operation->first_dependent <= dependent_count &&
           operation->dependent_count <= dependent_count - operation->first_dependent &&
           memory_is_right(operation);
}

static bool indices_are_right(const struct operation *operations, uint32_t count,
                              const uint32_t *dependents, uint32_t dependent_count,
                              uint32_t flow_count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!operation_is_right(&operations[i], dependent_count, flow_count))
            return false;
    for (uint32_t i = 0; i < dependent_count; i++)
        if (dependents[i] >= count)
            return false;
    return true;
}

static void *array(uint32_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static void prepare_task(struct workload *workload, uint32_t index)
{
    const struct operation *operation = &workload->operations[index];
    struct task *task = &workload->tasks[index];
    workload->records[index] = (struct message_record){.started_ps = NEVER,
                                                       .first_sent_ps = NEVER,
                                                       .delivered_ps = NEVER,
                                                       .completed_ps = NEVER,
                                                       .status = STATUS_PENDING};
    task->workload = workload;
    task->operation = operation;
    task->message = (struct message){.handler = &handler,
                                     .record = &workload->records[index],
                                     .verb = (uint8_t)operation->verb,
                                     .lkey = operation->lkey,
                                     .local_va = operation->local_va,
                                     .rkey = operation->rkey,
                                     .remote_va = operation->remote_va,
                                     .length = operation->length,
                                     .immediate = operation->immediate,
                                     .compare = operation->compare,
                                     .swap_add = operation->swap_add};
    timer_init(&task->start, start_timer);
    for (uint32_t i = 0; i < operation->dependent_count; i++)
        workload->tasks[workload->dependents[operation->first_dependent + i]].unmet++;
}

struct workload *workload_new(struct clock *clock, const struct operation *operations,
                              uint32_t count, const uint32_t *dependents, uint32_t dependent_count,
                              uint32_t flow_count)
{
    if (!indices_are_right(operations, count, dependents, dependent_count, flow_count))
        return NULL;
    struct workload *workload = calloc(1, sizeof *workload);
    if (!workload)
        return NULL;
    *workload = (struct workload){.clock = clock,
                                  .operations = operations,
                                  .dependents = dependents,
                                  .tasks = array(count, sizeof *workload->tasks),
                                  .records = array(count, sizeof *workload->records),
                                  .delivered = array(flow_count, sizeof *workload->delivered),
                                  .count = count,
                                  .remaining = count,
                                  .finished = count == 0};
    if (!workload->tasks || !workload->records || !workload->delivered) {
        workload_free(workload);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        prepare_task(workload, i);
    return workload;
}

void workload_free(struct workload *workload)
{
    if (!workload)
        return;
    free(workload->tasks);
    free(workload->records);
    free(workload->delivered);
    free(workload);
}

/* ---- starting ---------------------------------------------------------------- */

static void post_receive(struct task *task, picoseconds now)
{
    const struct operation *operation = task->operation;
    task->receive = (struct receive){
        .lkey = operation->rkey, .va = operation->remote_va, .length = operation->length};
    receive_queue_post(operation->qp->peer, &task->receive, now);
}

static void start(struct task *task, picoseconds now)
{
    if (takes_receive(task->operation))
        post_receive(task, now);
    send_queue_post(task->operation->qp, &task->message, now);
}

static void start_timer(struct timer *timer, picoseconds now)
{
    start(container_of(timer, struct task, start), now);
}

static void start_in_time(struct task *task, picoseconds now)
{
    picoseconds not_before = task->operation->not_before_ps;
    if (not_before > now)
        timer_set(task->workload->clock, &task->start, not_before);
    else
        start(task, now);
}

void workload_start(struct workload *workload)
{
    for (uint32_t i = 0; i < workload->count; i++)
        if (workload->tasks[i].unmet == 0)
            start_in_time(&workload->tasks[i], workload->clock->now);
}

/* ---- what follows ------------------------------------------------------------ */

static struct task *dependent(const struct task *task, uint32_t i)
{
    const struct workload *workload = task->workload;
    return &workload->tasks[workload->dependents[task->operation->first_dependent + i]];
}

static bool waits_for_delivery(const struct task *waiting, const struct task *task)
{
    const struct nic *nic = waiting->operation->qp->nic;
    return nic != task->operation->qp->nic && nic == task->operation->qp->peer->nic;
}

static void release_dependents(struct task *task, bool by_delivery, picoseconds now)
{
    for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
        struct task *waiting = dependent(task, i);
        if (waits_for_delivery(waiting, task) == by_delivery && --waiting->unmet == 0)
            start_in_time(waiting, now);
    }
}

static void ended(struct workload *workload)
{
    workload->remaining--;
    workload->finished = workload->remaining == 0;
}

static bool was_released(const struct task *waiting, const struct task *task)
{
    return task->message.record->delivered_ps != NEVER && waits_for_delivery(waiting, task);
}

/* Cancels all that waits for `task`, and what waits for those, and so on. */
static void cancel_dependents(struct task *task, picoseconds now)
{
    task->next_ended = NULL;
    struct task *last = task;
    for (; task; task = task->next_ended)
        for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
            struct task *waiting = dependent(task, i);
            struct message_record *record = waiting->message.record;
            if (record->status != STATUS_PENDING || was_released(waiting, task))
                continue;
            record->status = STATUS_CANCELLED;
            record->completed_ps = now;
            ended(task->workload);
            waiting->next_ended = NULL;
            last->next_ended = waiting;
            last = waiting;
        }
}

static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    struct task *task = container_of(message, struct task, message);
    task->workload->delivered[task->operation->flow] += bytes;
    if (all)
        release_dependents(task, true, now);
}

static void completed(struct message *message, picoseconds now)
{
    struct task *task = container_of(message, struct task, message);
    ended(task->workload);
    if (message->record->status == STATUS_SUCCESS)
        release_dependents(task, false, now);
    else
        cancel_dependents(task, now);
}

/* ---- results ----------------------------------------------------------------- */

uint32_t workload_remaining(const struct workload *workload)
{
    return workload->remaining;
}

const bool *workload_finished(const struct workload *workload)
{
    return &workload->finished;
}

const struct message_record *workload_records(const struct workload *workload)
{
    return workload->records;
}

const uint64_t *workload_delivered(const struct workload *workload)
{
    return workload->delivered;
}
