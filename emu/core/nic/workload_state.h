/* The state of a workload, which its files share: workload_set_up.c, workload.c, workload_end.c. */
#ifndef EMU_NIC_WORKLOAD_STATE_H
#define EMU_NIC_WORKLOAD_STATE_H

#include "nic/wqe.h"
#include "sim/cache_line.h"

struct task {
    struct workload *workload;
    const struct operation *operation;
    struct message message;
    struct receive receive; /* of a SEND, at the other end */
    struct timer start, work;
    uint32_t unmet;           /* operations that it still waits for */
    bool will_be_told;        /* it is in the list of failures, for all processes to hear */
    struct task *next_failed; /* list of tasks whose dependents do not start */
};

/* What the workload knows about the hosts on one clock. */
struct share {
    struct clock *clock;
    uint32_t remaining;      /* operations of these hosts that are not over */
    int64_t undelivered;     /* unreliable messages that left these hosts, less those that came */
    picoseconds last_change; /* of either count */
    struct task *failed;     /* those since the end was last looked for */
    bool elsewhere;          /* another process runs these hosts */
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

static inline struct share *share_of_host(const struct workload *workload, uint32_t host)
{
    return &workload->shares[workload->share_of[host]];
}

static inline struct clock *clock_of(const struct workload *workload, uint32_t host)
{
    return share_of_host(workload, host)->clock;
}

/* Whether this process runs its sender or its receiver. Of other tasks there is nothing. */
static inline bool task_is_here(const struct task *task)
{
    return task->workload;
}

/* Whether another process starts and ends it. */
static inline bool task_is_elsewhere(const struct task *task)
{
    return share_of_host(task->workload, task->operation->host)->elsewhere;
}

/* What happens to a task: workload.c. */
extern const struct message_handler workload_message_handler;
void task_start_due(struct timer *timer, picoseconds now);
void task_work_done(struct timer *timer, picoseconds now);
void late_event_due(struct timer *timer, picoseconds now);

/* The task is over: workload_end.c. If it has failed, its dependents will not start. */
void task_ended(struct task *task, picoseconds now);
void task_failed(struct task *task);
/* It was counted as over, because a predecessor had failed, and starts after all. */
void task_revive(struct task *task);
/* Whether a task that waits for `task` waits for its delivery, and not for its completion. */
bool task_waits_for_delivery(const struct task *waiting, const struct task *task);

static inline struct task *task_dependent(const struct task *task, uint32_t i)
{
    const struct workload *workload = task->workload;
    return &workload->tasks[workload->config.dependents[task->operation->first_dependent + i]];
}

#endif
