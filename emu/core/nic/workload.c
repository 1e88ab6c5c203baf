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
 * Both are entries in the records alone, made when the end of the workload is looked for: an
 * operation whose predecessors are over after all, since a message was delivered that its sender
 * had given up, starts whatever its record says.
 *
 * Messages of unreliable transports complete when they have left. The workload ends only when those
 * in flight have arrived, or when none has arrived for a while: the rest is lost.
 *
 * If the path between NIC and host takes time, the host sees each event that much later.
 *
 * Hosts may be in several parts of the fabric (part.h). Each part starts and counts the operations
 * of its own hosts. It announces messages by mail when their receivers are in other parts. Hosts
 * that must know at once what happened at another share a part: those with a device in common,
 * those that wait for messages of others, and the responder of a READ or atomic that waits for it.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/datagram.h"
#include "nic/delivery.h"
#include "nic/host_path.h"
#include "nic/nic.h"
#include "nic/operation.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"
#include "nic/sum.h"
#include "sim/cache_line.h"
#include "sim/part.h"

struct task {
    struct workload *workload;
    const struct operation *operation;
    struct message message;
    struct receive receive; /* of a SEND, at the other end */
    struct timer start, work;
    uint32_t unmet;           /* operations that it still waits for */
    struct task *next_failed; /* list of tasks whose dependents do not start */
};

/* What the workload knows about the hosts on one clock. */
struct share {
    struct clock *clock;
    uint32_t remaining;      /* operations of these hosts that are not over */
    int64_t undelivered;     /* unreliable messages that left these hosts, less those that came */
    picoseconds last_change; /* of either count */
    struct task *failed;     /* those since the end was last looked for */
} __attribute__((aligned(CACHE_LINE)));

struct workload {
    struct workload_config config;
    struct task *tasks;
    struct message_record *records;
    uint64_t *delivered;     /* bytes, per flow */
    picoseconds *busy_until; /* per device */
    struct address *to;      /* per flow, for datagrams */
    struct share *shares;
    uint32_t share_count;
    uint16_t *share_of;             /* by number of the host */
    struct late_event *late_events; /* two for each task; NULL when hosts see all events at once */
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
static void seen(struct timer *timer, picoseconds now);

static const struct message_handler handler = {.delivered = delivered, .completed = completed};

/* Room for at least one, so that NULL always means that there is no memory. */
static void *array(uint32_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static struct share *share_of_host(const struct workload *workload, uint32_t host)
{
    return &workload->shares[workload->share_of[host]];
}

static struct clock *clock_of(const struct workload *workload, uint32_t host)
{
    return share_of_host(workload, host)->clock;
}

/* ---- set-up ------------------------------------------------------------------ */

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
    const struct operation *operation = &workload->config.operations[index];
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
    share_of_host(workload, operation->host)->remaining++;
    timer_init(&task->start, start_timer);
    timer_init(&task->work, work_timer);
    for (uint32_t i = 0; i < operation->dependent_count; i++)
        workload->tasks[workload->config.dependents[operation->first_dependent + i]].unmet++;
}

static bool sees_late(const struct nic *nic)
{
    const struct host_path *path = &nic->config.path;
    return path->write_ps || path->completion_ps || path->copy_rate_bps;
}

static bool any_host_sees_late(const struct workload *workload)
{
    for (uint32_t i = 0; i < workload->config.count; i++) {
        const struct qp *qp = workload->config.operations[i].qp;
        if (qp && (sees_late(qp->nic) || sees_late(qp->peer->nic)))
            return true;
    }
    return false;
}

static bool add_late_events(struct workload *workload)
{
    uint32_t count = 2 * workload->config.count;
    workload->late_events = array(count, sizeof *workload->late_events);
    for (uint32_t i = 0; workload->late_events && i < count; i++) {
        struct late_event *late = &workload->late_events[i];
        *late = (struct late_event){.task = &workload->tasks[i / 2], .event = i % 2};
        timer_init(&late->due, seen);
    }
    return workload->late_events != NULL;
}

/* The number of the share with this clock, which is made if need be. */
static uint16_t share_with(struct workload *workload, struct clock *clock)
{
    uint32_t number = 0;
    while (number < workload->share_count && workload->shares[number].clock != clock)
        number++;
    workload->shares[number].clock = clock;
    if (number == workload->share_count)
        workload->share_count++;
    return (uint16_t)number;
}

static bool take_memory(struct workload *workload)
{
    const struct workload_config *config = &workload->config;
    workload->tasks = array(config->count, sizeof *workload->tasks);
    workload->records = array(config->count, sizeof *workload->records);
    workload->delivered = array(config->flow_count, sizeof *workload->delivered);
    workload->busy_until = array(config->device_count, sizeof *workload->busy_until);
    workload->to = array(config->flow_count, sizeof *workload->to);
    workload->share_of = array(config->host_count, sizeof *workload->share_of);
    workload->shares = aligned_alloc(CACHE_LINE, PARTS_MAX * sizeof *workload->shares);
    return workload->tasks && workload->records && workload->delivered && workload->busy_until &&
           workload->to && workload->share_of && workload->shares;
}

static bool prepare(struct workload *workload)
{
    if (!take_memory(workload))
        return false;
    memset(workload->shares, 0, PARTS_MAX * sizeof *workload->shares);
    for (uint32_t host = 0; host < workload->config.host_count; host++)
        workload->share_of[host] = share_with(workload, workload->config.clocks[host]);
    for (uint32_t i = 0; i < workload->config.count; i++)
        prepare_task(workload, i);
    return !any_host_sees_late(workload) || add_late_events(workload);
}

struct workload *workload_new(const struct workload_config *config)
{
    if (!operations_are_valid(config))
        return NULL;
    struct workload *workload = malloc(sizeof *workload);
    if (!workload)
        return NULL;
    *workload = (struct workload){.config = *config};
    if (prepare(workload))
        return workload;
    workload_free(workload);
    return NULL;
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
    free(workload->share_of);
    free(workload->shares);
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

/* The receiver will know the message by what arrives. */
static void expect(struct task *task)
{
    struct qp *receiver = task->operation->qp->peer;
    if (operation_takes_receive(task->operation))
        post_receive(task, receiver->nic->clock->now);
    delivery_expect(receiver, &task->message);
}

static void expect_by_mail(const struct mail *mail)
{
    expect(mail->to);
}

/* Its first packet arrives after the mail: it has a cable to pass between the two parts. */
static void announce(struct task *task)
{
    struct clock *own = task->operation->qp->nic->clock;
    struct clock *receivers = task->operation->qp->peer->nic->clock;
    if (own == receivers)
        expect(task);
    else
        part_post(part_of_clock(own), part_of_clock(receivers),
                  (struct mail){.open = expect_by_mail, .to = task, .at = NEVER});
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
    timer_set(clock_of(task->workload, task->operation->host), &task->work,
              from + task->operation->duration_ps);
}

static void start(struct task *task, picoseconds now)
{
    if (operation_is_work(task->operation)) {
        work(task, now);
        return;
    }
    send_queue_post(task->operation->qp, &task->message, now);
    if (task->message.record->status == STATUS_PENDING && !message_is_fetch(&task->message))
        announce(task);
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
        timer_set(clock_of(task->workload, task->operation->host), &task->start, not_before);
    else if (not_after && not_after < now)
        skip(task, now);
    else
        start(task, now);
}

void workload_start(struct workload *workload)
{
    for (uint32_t i = 0; i < workload->config.count; i++) {
        struct task *task = &workload->tasks[i];
        if (task->unmet == 0)
            start_in_time(task, clock_of(workload, task->operation->host)->now);
    }
}

/* ---- dependents ------------------------------------------------------------ */

static struct task *dependent(const struct task *task, uint32_t i)
{
    const struct workload *workload = task->workload;
    return &workload->tasks[workload->config.dependents[task->operation->first_dependent + i]];
}

static bool waits_for_delivery(const struct task *waiting, const struct task *task)
{
    uint32_t host = waiting->operation->host;
    return host != task->operation->host && host == task->operation->far;
}

/* It was counted as over, because a predecessor had failed. */
static void revive(struct task *task)
{
    task->message.record->status = STATUS_PENDING;
    task->message.record->completed_ps = NEVER;
    share_of_host(task->workload, task->operation->host)->remaining++;
}

static void release(struct task *task, picoseconds now)
{
    if (--task->unmet)
        return;
    if (task->message.record->status != STATUS_PENDING)
        revive(task);
    start_in_time(task, now);
}

static void release_dependents(struct task *task, bool by_delivery, picoseconds now)
{
    for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
        struct task *waiting = dependent(task, i);
        if (waits_for_delivery(waiting, task) == by_delivery)
            release(waiting, now);
    }
}

/* ---- operations that will not start ------------------------------------------ */

static void ended(struct task *task, picoseconds now)
{
    struct share *share = share_of_host(task->workload, task->operation->host);
    share->remaining--;
    if (share->last_change < now)
        share->last_change = now;
}

/* Its dependents will not start. */
static void failed(struct task *task)
{
    struct share *share = share_of_host(task->workload, task->operation->host);
    task->next_failed = share->failed;
    share->failed = task;
}

static void skip(struct task *task, picoseconds now)
{
    task->message.record->status = STATUS_SKIPPED;
    task->message.record->completed_ps = now;
    ended(task, now);
    failed(task);
}

static bool was_released(const struct task *waiting, const struct task *task)
{
    return task->message.record->delivered_ps != NEVER && waits_for_delivery(waiting, task);
}

/* Whether it is known already that the task does not start, for an earlier reason. */
static bool was_stopped_before(const struct message_record *record, enum status why, picoseconds at)
{
    return record->completed_ps < at || (record->completed_ps == at && record->status <= (int)why);
}

/* Returns whether that is new for the task. */
static bool stop(struct task *task, enum status why, picoseconds at)
{
    struct message_record *record = task->message.record;
    if (record->status == STATUS_PENDING)
        ended(task, at);
    else if (was_stopped_before(record, why, at))
        return false;
    record->status = why;
    record->completed_ps = at;
    return true;
}

/* Stops every operation that waits for `task`, directly or through others. The result does not
 * depend on the order in which failures are dealt with: the earliest of them counts. */
static void stop_dependents(struct task *task)
{
    picoseconds at = task->message.record->completed_ps;
    enum status why =
        task->message.record->status == STATUS_SKIPPED ? STATUS_SKIPPED : STATUS_CANCELLED;
    task->next_failed = NULL;
    struct task *last = task;
    for (; task; task = task->next_failed)
        for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
            struct task *waiting = dependent(task, i);
            if (was_released(waiting, task) || !stop(waiting, why, at))
                continue;
            waiting->next_failed = NULL;
            last->next_failed = waiting;
            last = waiting;
        }
}

static void stop_all_dependents(struct workload *workload)
{
    for (uint32_t i = 0; i < workload->share_count; i++) {
        struct task *task = workload->shares[i].failed;
        workload->shares[i].failed = NULL;
        for (struct task *next; task; task = next) {
            next = task->next_failed;
            stop_dependents(task);
        }
    }
}

/* ---- delivered, completed ------------------------------------------------------ */

static void add_up(const struct operation *operation)
{
    uint8_t *sum, *summand;
    if (operation->sum_key != 0 && operation_find_summands(operation, &sum, &summand) && sum)
        sum_add(sum, summand, operation->length / sizeof(float));
}

/* The host whose memory the message writes. */
static uint32_t host_of_memory(const struct task *task)
{
    return message_is_fetch(&task->message) ? task->operation->host : task->operation->far;
}

static void count_undelivered(struct task *task, uint32_t host, int64_t more, picoseconds now)
{
    if (operation_is_reliable(task->operation))
        return;
    struct share *share = share_of_host(task->workload, host);
    share->undelivered += more;
    share->last_change = now;
}

static void see_delivered(struct task *task, picoseconds now)
{
    count_undelivered(task, task->operation->far, -1, now);
    add_up(task->operation);
    release_dependents(task, true, now);
}

static void see_completed(struct task *task, picoseconds now)
{
    bool success = task->message.record->status == STATUS_SUCCESS;
    if (success)
        count_undelivered(task, task->operation->host, 1, now);
    ended(task, now);
    if (success)
        release_dependents(task, false, now);
    else
        failed(task);
}

static void seen(struct timer *timer, picoseconds now)
{
    struct late_event *late = container_of(timer, struct late_event, due);
    if (late->event == DELIVERED)
        see_delivered(late->task, now);
    else
        see_completed(late->task, now);
}

static void see_later(struct task *task, enum event event, uint32_t host, picoseconds at)
{
    struct workload *workload = task->workload;
    struct late_event *late = &workload->late_events[2 * (task - workload->tasks) + event];
    timer_set(clock_of(workload, host), &late->due, at);
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
        see_later(task, DELIVERED, host_of_memory(task), now + after);
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
        see_later(task, COMPLETED, task->operation->host, now + after);
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
    uint32_t remaining = 0;
    for (uint32_t i = 0; i < workload->share_count; i++)
        remaining += workload->shares[i].remaining;
    return remaining;
}

bool workload_is_finished(struct workload *workload, int64_t now_ps)
{
    stop_all_dependents(workload);
    int64_t undelivered = 0;
    picoseconds last_change = 0;
    for (uint32_t i = 0; i < workload->share_count; i++) {
        const struct share *share = &workload->shares[i];
        if (share->remaining)
            return false;
        undelivered += share->undelivered;
        if (share->last_change > last_change)
            last_change = share->last_change;
    }
    return undelivered <= 0 || now_ps - last_change >= workload->config.delivery_limit_ps;
}

const struct message_record *workload_records(const struct workload *workload)
{
    return workload->records;
}

const uint64_t *workload_delivered(const struct workload *workload)
{
    return workload->delivered;
}
