/* Executes a graph of operations inside the core, so that no Python runs between two packets.
 *
 * An operation starts when all operations that it depends on are over, and not before its time.
 * What "over" means depends on the host of the waiting operation:
 *
 *     the waiting operation's host       waits until the message is
 *     is the receiver of the message     delivered: its bytes are in memory
 *     is its sender, or a third host     completed: it is acknowledged
 *
 * A message may be added to a sum: on delivery its values are added to the receiver's.
 * An operation without a queue pair is work: it is over after its duration. Before that it may
 * occupy a device alone. A device serves its operations in the order of their requests.
 *
 * When an operation fails, all operations that depend on it are cancelled, so that every workload
 * ends. An operation whose turn comes after its latest time is skipped, and so are its dependents.
 *
 * Messages of unreliable transports complete when they have left. The workload ends only when those
 * in flight have arrived, or when none has arrived for a millisecond: the rest is lost.
 *
 * If the path between NIC and host takes time, the host sees each event that much later. */
#include <stdlib.h>

#include "nic/datagram.h"
#include "nic/host_path.h"
#include "nic/nic.h"
#include "nic/operation.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"
#include "nic/sum.h"

struct task {
    struct workload *workload;
    const struct operation *operation;
    struct message message;
    struct receive receive; /* of a SEND, at the other end */
    struct timer start, work;
    uint32_t unmet;          /* operations that it still waits for */
    bool is_undelivered;     /* completed, and not delivered yet */
    struct task *next_ended; /* list of tasks whose dependents are to be stopped */
};

#define DELIVERY_TIMEOUT (1000 * PS_PER_US)

struct workload {
    struct clock *clock;
    const struct operation *operations;
    const uint32_t *dependents;
    struct task *tasks;
    struct message_record *records;
    uint64_t *delivered;     /* bytes, per flow */
    picoseconds *busy_until; /* per device */
    struct address *to;      /* per flow, for datagrams */
    uint32_t count, remaining;
    uint32_t undelivered; /* messages completed, and not delivered yet */
    struct timer delivery_timeout;
    struct late_event *late_events; /* two for each task; NULL when hosts see all events at once */
    bool finished;
};

/* An event of a task's message that a host sees some time after its NIC. */
enum event { DELIVERED, COMPLETED };

struct late_event {
    struct task *task;
    enum event event;
    struct timer due;
};

static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now);
static void completed(struct message *message, picoseconds now);
static void start_timer(struct timer *timer, picoseconds now);
static void skip(struct task *task, picoseconds now);
static void work_timer(struct timer *timer, picoseconds now);
static void delivery_timed_out(struct timer *timer, picoseconds now);
static void seen(struct timer *timer, picoseconds now);

static const struct message_handler handler = {.delivered = delivered, .completed = completed};

/* ---- set-up ------------------------------------------------------------------ */

static void *array(uint32_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

/* The destination of a datagram; all messages of a flow have the same. */
static const struct address *address_of(struct workload *workload,
                                        const struct operation *operation)
{
    const struct qp *qp = operation->qp;
    struct address *to = &workload->to[operation->flow];
    if (to->qpn == 0)
        address_init(to, qp, &qp->remote, qp->peer->config.qkey, qp->config.sl);
    return to;
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
    if (operation_is_datagram(operation))
        task->message.to = address_of(workload, operation);
    timer_init(&task->start, start_timer);
    timer_init(&task->work, work_timer);
    for (uint32_t i = 0; i < operation->dependent_count; i++)
        workload->tasks[workload->dependents[operation->first_dependent + i]].unmet++;
}

static bool sees_late(const struct nic *nic)
{
    const struct host_path *path = &nic->config.path;
    return path->write_ps || path->completion_ps || path->copy_rate_bps;
}

static bool any_host_sees_late(const struct workload *workload)
{
    for (uint32_t i = 0; i < workload->count; i++) {
        const struct qp *qp = workload->operations[i].qp;
        if (qp && (sees_late(qp->nic) || sees_late(qp->peer->nic)))
            return true;
    }
    return false;
}

static bool add_late_events(struct workload *workload)
{
    workload->late_events = array(2 * workload->count, sizeof *workload->late_events);
    for (uint32_t i = 0; workload->late_events && i < 2 * workload->count; i++) {
        struct late_event *late = &workload->late_events[i];
        *late = (struct late_event){.task = &workload->tasks[i / 2], .event = i % 2};
        timer_init(&late->due, seen);
    }
    return workload->late_events != NULL;
}

struct workload *workload_new(struct clock *clock, const struct operation *operations,
                              uint32_t count, const uint32_t *dependents, uint32_t dependent_count,
                              uint32_t flow_count, uint32_t device_count)
{
    if (!operations_are_valid(operations, count, dependents, dependent_count, flow_count,
                              device_count))
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
                                  .busy_until = array(device_count, sizeof *workload->busy_until),
                                  .to = array(flow_count, sizeof *workload->to),
                                  .count = count,
                                  .remaining = count,
                                  .finished = count == 0};
    if (!workload->tasks || !workload->records || !workload->delivered || !workload->busy_until ||
        !workload->to) {
        workload_free(workload);
        return NULL;
    }
    timer_init(&workload->delivery_timeout, delivery_timed_out);
    for (uint32_t i = 0; i < count; i++)
        prepare_task(workload, i);
    if (any_host_sees_late(workload) && !add_late_events(workload)) {
        workload_free(workload);
        return NULL;
    }
    return workload;
}

void workload_free(struct workload *workload)
{
    if (!workload)
        return;
    free(workload->late_events);
    free(workload->tasks);
    free(workload->records);
    free(workload->delivered);
    free(workload->busy_until);
    free(workload->to);
    free(workload);
}

/* ---- starting ---------------------------------------------------------------- */

static void post_receive(struct task *task, picoseconds now)
{
    const struct operation *operation = task->operation;
    task->receive = (struct receive){.lkey = operation->rkey,
                                     .va = operation->remote_va,
                                     .length = operation_receive_bytes(operation)};
    receive_queue_post(operation->qp->peer, &task->receive, now);
}

/* The time at which the device has served the task, after those before it. */
static picoseconds served(const struct task *task, picoseconds now)
{
    picoseconds *busy_until = &task->workload->busy_until[task->operation->device];
    *busy_until = (*busy_until > now ? *busy_until : now) + task->operation->busy_ps;
    return *busy_until;
}

static void work(struct task *task, picoseconds now)
{
    picoseconds from = task->operation->busy_ps ? served(task, now) : now;
    task->message.record->started_ps = now;
    timer_set(task->workload->clock, &task->work, from + task->operation->duration_ps);
}

static void start(struct task *task, picoseconds now)
{
    if (operation_is_work(task->operation)) {
        work(task, now);
        return;
    }
    if (operation_takes_receive(task->operation))
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
    picoseconds not_after = task->operation->not_after_ps;
    if (not_before > now)
        timer_set(task->workload->clock, &task->start, not_before);
    else if (not_after && not_after < now)
        skip(task, now);
    else
        start(task, now);
}

void workload_start(struct workload *workload)
{
    for (uint32_t i = 0; i < workload->count; i++)
        if (workload->tasks[i].unmet == 0)
            start_in_time(&workload->tasks[i], workload->clock->now);
}

/* ---- dependents ------------------------------------------------------------ */

static struct task *dependent(const struct task *task, uint32_t i)
{
    const struct workload *workload = task->workload;
    return &workload->tasks[workload->dependents[task->operation->first_dependent + i]];
}

static bool waits_for_delivery(const struct task *waiting, const struct task *task)
{
    uint32_t host = waiting->operation->host;
    return host != task->operation->host && host == task->operation->far;
}

static void release_dependents(struct task *task, bool by_delivery, picoseconds now)
{
    for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
        struct task *waiting = dependent(task, i);
        if (waits_for_delivery(waiting, task) == by_delivery && --waiting->unmet == 0)
            start_in_time(waiting, now);
    }
}

static void look_for_end(struct workload *workload, picoseconds now)
{
    workload->finished = workload->remaining == 0 && workload->undelivered == 0;
    if (workload->remaining == 0 && !workload->finished)
        timer_set(workload->clock, &workload->delivery_timeout, now + DELIVERY_TIMEOUT);
}

static void delivery_timed_out(struct timer *timer, picoseconds now)
{
    (void)now;
    container_of(timer, struct workload, delivery_timeout)->finished = true;
}

static void ended(struct workload *workload, picoseconds now)
{
    workload->remaining--;
    look_for_end(workload, now);
}

static bool was_released(const struct task *waiting, const struct task *task)
{
    return task->message.record->delivered_ps != NEVER && waits_for_delivery(waiting, task);
}

static void never_start(struct task *task, enum status why, picoseconds now)
{
    struct message_record *record = task->message.record;
    record->status = why;
    record->completed_ps = now;
    ended(task->workload, now);
}

/* Stops every operation that waits for `task`, directly or through others. */
static void stop_dependents(struct task *task, enum status why, picoseconds now)
{
    task->next_ended = NULL;
    struct task *last = task;
    for (; task; task = task->next_ended)
        for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
            struct task *waiting = dependent(task, i);
            if (waiting->message.record->status != STATUS_PENDING || was_released(waiting, task))
                continue;
            never_start(waiting, why, now);
            waiting->next_ended = NULL;
            last->next_ended = waiting;
            last = waiting;
        }
}

static void skip(struct task *task, picoseconds now)
{
    never_start(task, STATUS_SKIPPED, now);
    stop_dependents(task, STATUS_SKIPPED, now);
}

static void add_up(const struct operation *operation)
{
    uint8_t *sum, *summand;
    if (operation->sum_key != 0 && operation_find_summands(operation, &sum, &summand) && sum)
        sum_add(sum, summand, operation->length / sizeof(float));
}

static void see_delivered(struct task *task, picoseconds now)
{
    struct workload *workload = task->workload;
    if (task->is_undelivered) {
        workload->undelivered--;
        look_for_end(workload, now);
    }
    task->is_undelivered = false;
    add_up(task->operation);
    release_dependents(task, true, now);
}

static void see_completed(struct task *task, picoseconds now)
{
    const struct message_record *record = task->message.record;
    bool success = record->status == STATUS_SUCCESS;
    task->is_undelivered =
        success && !operation_is_reliable(task->operation) && record->delivered_ps == NEVER;
    task->workload->undelivered += task->is_undelivered;
    ended(task->workload, now);
    if (success)
        release_dependents(task, false, now);
    else
        stop_dependents(task, STATUS_CANCELLED, now);
}

static void seen(struct timer *timer, picoseconds now)
{
    struct late_event *late = container_of(timer, struct late_event, due);
    if (late->event == DELIVERED)
        see_delivered(late->task, now);
    else
        see_completed(late->task, now);
}

static void see_later(struct task *task, enum event event, picoseconds at)
{
    struct workload *workload = task->workload;
    struct late_event *late = &workload->late_events[2 * (task - workload->tasks) + event];
    timer_set(workload->clock, &late->due, at);
}

/* The path of the host whose memory the message writes. */
static const struct host_path *path_to_memory(const struct task *task)
{
    const struct qp *qp = task->operation->qp;
    return &(message_is_fetch(&task->message) ? qp : qp->peer)->nic->config.path;
}

static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    struct task *task = container_of(message, struct task, message);
    task->workload->delivered[task->operation->flow] += bytes;
    if (!all)
        return;
    picoseconds after = host_path_after(path_to_memory(task), message->length);
    message->record->delivered_ps = now + after;
    if (after)
        see_later(task, DELIVERED, now + after);
    else
        see_delivered(task, now);
}

/* READs and atomics are in memory before their completion. */
static void completed(struct message *message, picoseconds now)
{
    struct task *task = container_of(message, struct task, message);
    const struct host_path *path = &task->operation->qp->nic->config.path;
    picoseconds after = path->completion_ps;
    if (message_is_fetch(message))
        after += host_path_after(path, message->length);
    message->record->completed_ps = now + after;
    if (after)
        see_later(task, COMPLETED, now + after);
    else
        see_completed(task, now);
}

static void work_timer(struct timer *timer, picoseconds now)
{
    struct task *task = container_of(timer, struct task, work);
    struct message_record *record = task->message.record;
    record->delivered_ps = record->completed_ps = now;
    record->status = STATUS_SUCCESS;
    see_completed(task, now);
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
