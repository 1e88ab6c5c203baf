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
 *
 * The parts may be in several processes (own_hosts). What a process knows of an operation is what
 * its own hosts see: the sender's times, or the delivery. The processes exchange failures when they
 * look whether the workload is over. */
#include "nic/workload_state.h"

#include "nic/delivery.h"
#include "nic/host_path.h"
#include "nic/nic.h"
#include "nic/operation.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"
#include "nic/sum.h"
#include "nic/workload.h"
#include "sim/part.h"

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

/* An announced message, as bytes. */
struct announcement {
    uint64_t first_psn;
    uint32_t packets;
    uint32_t task; /* its number */
};

static uint32_t announcement_size(const struct mail *mail)
{
    (void)mail;
    return sizeof(struct announcement);
}

static void write_announcement(const struct mail *mail, struct part *from, uint8_t *bytes)
{
    (void)from;
    const struct task *task = mail->to;
    struct announcement announcement = {.first_psn = task->message.first_psn,
                                        .packets = task->message.packets,
                                        .task = (uint32_t)(task - task->workload->tasks)};
    memcpy(bytes, &announcement, sizeof announcement);
}

static bool read_announcement(struct mail *mail, struct part *to, const void *places,
                              const uint8_t *bytes)
{
    (void)to;
    const struct workload *workload = places;
    struct announcement announcement;
    memcpy(&announcement, bytes, sizeof announcement);
    struct task *task = &workload->tasks[announcement.task];
    task->message.first_psn = announcement.first_psn;
    task->message.packets = announcement.packets;
    mail->to = task;
    mail->at = NEVER;
    return true;
}

const struct mail_kind mail_with_announcement = {.open = expect_by_mail,
                                                 .size = announcement_size,
                                                 .write = write_announcement,
                                                 .read = read_announcement};

/* Its first packet arrives after the mail: it has a cable to pass between the two parts. */
static void announce(struct task *task)
{
    struct clock *own = clock_of(task->workload, task->operation->host);
    struct clock *receivers = clock_of(task->workload, task->operation->far);
    if (own == receivers)
        expect(task);
    else
        part_post(part_of_clock(own), part_of_clock(receivers),
                  (struct mail){.kind = &mail_with_announcement, .to = task, .at = NEVER});
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

void task_start_due(struct timer *timer, picoseconds now)
{
    start(container_of(timer, struct task, start), now);
}

static void skip(struct task *task, picoseconds now)
{
    task->message.record->status = STATUS_SKIPPED;
    task->message.record->completed_ps = now;
    task_ended(task, now);
    task_failed(task);
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
        if (task_is_here(task) && task->unmet == 0 && !task_is_elsewhere(task))
            start_in_time(task, clock_of(workload, task->operation->host)->now);
    }
}

/* ---- dependents ------------------------------------------------------------ */

static void release(struct task *task, picoseconds now)
{
    if (--task->unmet)
        return;
    if (task->message.record->status != STATUS_PENDING)
        task_revive(task);
    start_in_time(task, now);
}

static void release_dependents(struct task *task, bool by_delivery, picoseconds now)
{
    for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
        struct task *waiting = task_dependent(task, i);
        if (task_waits_for_delivery(waiting, task) == by_delivery)
            release(waiting, now);
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
    task_ended(task, now);
    if (success)
        release_dependents(task, false, now);
    else
        task_failed(task);
}

void late_event_due(struct timer *timer, picoseconds now)
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

void task_work_done(struct timer *timer, picoseconds now)
{
    struct task *task = container_of(timer, struct task, work);
    struct message_record *record = task->message.record;
    record->delivered_ps = record->completed_ps = now;
    record->status = STATUS_SUCCESS;
    see_completed(task, now);
}

const struct message_handler workload_message_handler = {.delivered = delivered,
                                                         .completed = completed};

/* ---- results ----------------------------------------------------------------- */

const struct message_record *workload_records(const struct workload *workload)
{
    return workload->records;
}

const uint64_t *workload_delivered(const struct workload *workload)
{
    return workload->delivered;
}
