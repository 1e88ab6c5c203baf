/* A workload's memory: taken and filled in before the run, and given back. */
#include <stdlib.h>
#include <string.h>

#include "nic/datagram.h"
#include "nic/nic.h"
#include "nic/operation.h"
#include "nic/workload_state.h"
#include "sim/part.h"

/* Room for at least one, so that NULL always means that there is no memory. */
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
    const struct operation *operation = &workload->config.operations[index];
    struct task *task = &workload->tasks[index];
    workload->records[index] = (struct message_record){.started_ps = NEVER,
                                                       .first_sent_ps = NEVER,
                                                       .delivered_ps = NEVER,
                                                       .completed_ps = NEVER,
                                                       .status = STATUS_PENDING};
    task->workload = workload;
    task->operation = operation;
    task->message = (struct message){.handler = &workload_message_handler,
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
    if (operation_is_datagram(operation) && operation->qp->nic)
        task->message.to = address_of(workload, operation);
    share_of_host(workload, operation->host)->remaining++;
    timer_init(&task->start, task_start_due);
    timer_init(&task->work, task_work_done);
    for (uint32_t i = 0; i < operation->dependent_count; i++)
        workload->tasks[workload->config.dependents[operation->first_dependent + i]].unmet++;
}

/* Another process sees what its hosts see. */
static bool sees_late(const struct nic *nic)
{
    if (!nic)
        return false;
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
        if (!operation_is_here(&workload->config, i / 2))
            continue;
        struct late_event *late = &workload->late_events[i];
        *late = (struct late_event){.task = &workload->tasks[i / 2], .event = i % 2};
        timer_init(&late->due, late_event_due);
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

static void add_host(struct workload *workload, uint32_t host)
{
    const bool *own = workload->config.own_hosts;
    workload->share_of[host] = share_with(workload, workload->config.clocks[host]);
    share_of_host(workload, host)->elsewhere = own && !own[host];
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
        add_host(workload, host);
    for (uint32_t i = 0; i < workload->config.count; i++)
        if (operation_is_here(&workload->config, i))
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
