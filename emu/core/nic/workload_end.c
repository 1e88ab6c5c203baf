/* How a workload ends: which operations will never start, and whether all is over. */
#include "nic/workload_state.h"

bool task_waits_for_delivery(const struct task *waiting, const struct task *task)
{
    uint32_t host = waiting->operation->host;
    return host != task->operation->host && host == task->operation->far;
}

void task_ended(struct task *task, picoseconds now)
{
    struct share *share = share_of_host(task->workload, task->operation->host);
    share->remaining--;
    if (share->last_change < now)
        share->last_change = now;
}

void task_failed(struct task *task)
{
    struct share *share = share_of_host(task->workload, task->operation->host);
    task->will_be_told = true;
    task->next_failed = share->failed;
    share->failed = task;
}

static bool was_released(const struct task *waiting, const struct task *task)
{
    return task->message.record->delivered_ps != NEVER && task_waits_for_delivery(waiting, task);
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
        task_ended(task, at);
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
            struct task *waiting = task_dependent(task, i);
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

void task_revive(struct task *task)
{
    task->message.record->status = STATUS_PENDING;
    task->message.record->completed_ps = NEVER;
    share_of_host(task->workload, task->operation->host)->remaining++;
}

uint32_t workload_remaining(const struct workload *workload)
{
    uint32_t remaining = 0;
    for (uint32_t i = 0; i < workload->share_count; i++)
        remaining += workload->shares[i].remaining;
    return remaining;
}

struct workload_counts workload_counts(const struct workload *workload)
{
    struct workload_counts counts = {0};
    for (uint32_t i = 0; i < workload->share_count; i++) {
        const struct share *share = &workload->shares[i];
        if (share->elsewhere)
            continue;
        counts.remaining += share->remaining;
        counts.undelivered += share->undelivered;
        if (share->last_change > counts.last_change_ps)
            counts.last_change_ps = share->last_change;
    }
    return counts;
}

bool workload_counts_say_over(const struct workload *workload, struct workload_counts counts,
                              int64_t now_ps)
{
    return counts.remaining == 0 &&
           (counts.undelivered <= 0 ||
            now_ps - counts.last_change_ps >= workload->config.delivery_limit_ps);
}

bool workload_is_finished(struct workload *workload, int64_t now_ps)
{
    stop_all_dependents(workload);
    return workload_counts_say_over(workload, workload_counts(workload), now_ps);
}

/* ---- several processes -------------------------------------------------------- */

uint32_t workload_take_failures(struct workload *workload, struct workload_failure *failures,
                                uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < workload->share_count; i++) {
        struct task **first = &workload->shares[i].failed;
        for (; *first && count < room; *first = (*first)->next_failed) {
            (*first)->will_be_told = false;
            failures[count++] =
                (struct workload_failure){.completed_ps = (*first)->message.record->completed_ps,
                                          .operation = (uint32_t)(*first - workload->tasks),
                                          .status = (*first)->message.record->status};
        }
    }
    return count;
}

void workload_hear_failure(struct workload *workload, const struct workload_failure *failure)
{
    const struct task *task = &workload->tasks[failure->operation];
    if (!task_is_here(task))
        return;
    enum status why = failure->status == STATUS_SKIPPED ? STATUS_SKIPPED : STATUS_CANCELLED;
    for (uint32_t i = 0; i < task->operation->dependent_count; i++) {
        struct task *waiting = task_dependent(task, i);
        if (!task_is_elsewhere(waiting) && !was_released(waiting, task) &&
            stop(waiting, why, failure->completed_ps) && !waiting->will_be_told)
            task_failed(waiting);
    }
}
