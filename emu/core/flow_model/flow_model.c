/* Executes a graph of operations without packets: messages are streams with max-min fair rates.
 *
 * A message goes through four moments:
 *
 *     posted ── lead ──▶ in its queue ──▶ transferred ─┬─ deliver ──▶ in memory
 *                          streams (transfers.h)       └─ complete ─▶ its sender knows
 *
 * Messages of a queue are transferred one after another, as those of a queue pair are. When an
 * operation starts, what it waits for, and what skips it are as nic/workload.c has it. Nothing is
 * lost here, so nothing fails. */
#include <stdlib.h>
#include <string.h>

#include "flow_model/transfers.h"

enum moment { START, READY, DELIVERED, COMPLETED };

struct event {
    picoseconds at;
    uint64_t order; /* among those of one instant */
    uint32_t operation;
    enum moment moment;
};

struct queue {
    uint32_t first, last; /* the one that is transferred, and those behind it */
};

struct samples {
    double *values;
    uint32_t capacity, count, columns;
    picoseconds interval, next; /* NEVER: there are no samples */
    bool with_flows;
};

struct flow_model {
    const struct flow_network *network;
    struct flow_workload workload;
    struct transfers transfers;
    struct flow_record *records;
    uint32_t *unmet;  /* operations that each still waits for */
    uint32_t *behind; /* the next one in its queue, or in a list of skipped ones */
    struct queue *queues;
    picoseconds *busy_until; /* of each device */
    int64_t *flow_bytes;
    uint32_t *flow_left; /* operations of each flow that are not over */
    struct event *events;
    uint32_t event_count, event_capacity;
    uint64_t next_order;
    picoseconds now;
    int64_t bytes;
    uint32_t remaining, flows_done;
    bool failed; /* there was no memory for an event */
    struct samples samples;
};

/* ---- set-up --------------------------------------------------------------------- */

static void *array(uint64_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static const struct flow_operation *operation_of(const struct flow_model *model, uint32_t id)
{
    return &model->workload.operations[id];
}

static const struct flow_of_messages *flow_of(const struct flow_model *model, uint32_t id)
{
    return &model->workload.flows[operation_of(model, id)->flow];
}

static const struct flow_shape *shape_of(const struct flow_model *model, uint32_t id)
{
    return &model->workload.shapes[operation_of(model, id)->shape];
}

static void prepare(struct flow_model *model)
{
    const struct flow_workload *workload = &model->workload;
    for (uint32_t id = 0; id < workload->operation_count; id++) {
        const struct flow_operation *operation = &workload->operations[id];
        model->records[id] = (struct flow_record){-1, -1, -1, FLOW_PENDING};
        model->flow_left[operation->flow]++;
        for (uint32_t i = 0; i < operation->dependent_count; i++)
            model->unmet[workload->dependents[operation->first_dependent + i]]++;
    }
    for (uint32_t queue = 0; queue < workload->queue_count; queue++)
        model->queues[queue].first = NO_MESSAGE;
}

struct flow_model *flow_model_new(const struct flow_network *network,
                                  const struct flow_workload *workload, double tolerance)
{
    struct flow_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    uint32_t count = workload->operation_count;
    model->network = network;
    model->workload = *workload;
    model->remaining = count;
    model->samples.next = NEVER;
    model->records = array(count, sizeof *model->records);
    model->unmet = array(count, sizeof *model->unmet);
    model->behind = array(count, sizeof *model->behind);
    model->queues = array(workload->queue_count, sizeof *model->queues);
    model->busy_until = array(workload->device_count, sizeof *model->busy_until);
    model->flow_bytes = array(workload->flow_count, sizeof *model->flow_bytes);
    model->flow_left = array(workload->flow_count, sizeof *model->flow_left);
    if (!transfers_init(&model->transfers, network, count, tolerance) || !model->records ||
        !model->unmet || !model->behind || !model->queues || !model->busy_until ||
        !model->flow_bytes || !model->flow_left) {
        flow_model_free(model);
        return NULL;
    }
    prepare(model);
    return model;
}

void flow_model_free(struct flow_model *model)
{
    if (!model)
        return;
    transfers_free(&model->transfers);
    free(model->records);
    free(model->unmet);
    free(model->behind);
    free(model->queues);
    free(model->busy_until);
    free(model->flow_bytes);
    free(model->flow_left);
    free(model->events);
    free(model->samples.values);
    free(model);
}

/* ---- events --------------------------------------------------------------------- */

static bool before(const struct event *one, const struct event *other)
{
    return one->at != other->at ? one->at < other->at : one->order < other->order;
}

static bool have_room(struct flow_model *model)
{
    if (model->event_count < model->event_capacity)
        return true;
    uint32_t capacity = model->event_capacity ? 2 * model->event_capacity : 1024;
    struct event *grown = realloc(model->events, capacity * sizeof *grown);
    if (!grown) {
        model->failed = true;
        return false;
    }
    model->events = grown;
    model->event_capacity = capacity;
    return true;
}

static void add_event(struct flow_model *model, picoseconds at, enum moment moment,
                      uint32_t operation)
{
    if (!have_room(model))
        return;
    struct event event = {at, model->next_order++, operation, moment};
    uint32_t place = model->event_count++;
    for (; place > 0 && before(&event, &model->events[(place - 1) / 2]); place = (place - 1) / 2)
        model->events[place] = model->events[(place - 1) / 2];
    model->events[place] = event;
}

static struct event take_event(struct flow_model *model)
{
    struct event *events = model->events, first = events[0];
    struct event moved = events[--model->event_count];
    uint32_t place = 0;
    for (uint32_t child; (child = 2 * place + 1) < model->event_count; place = child) {
        if (child + 1 < model->event_count && before(&events[child + 1], &events[child]))
            child++;
        if (!before(&events[child], &moved))
            break;
        events[place] = events[child];
    }
    events[place] = moved;
    return first;
}

/* ---- queues --------------------------------------------------------------------- */

static void transfer(struct flow_model *model, uint32_t id)
{
    const struct flow_shape *shape = shape_of(model, id);
    uint32_t route = (uint32_t)flow_of(model, id)->route;
    transfers_begin(&model->transfers, id, route, shape->wire_bytes, shape->alone_ps, model->now);
}

static void enter_queue(struct flow_model *model, uint32_t id)
{
    struct queue *queue = &model->queues[flow_of(model, id)->queue];
    model->behind[id] = NO_MESSAGE;
    if (queue->first == NO_MESSAGE) {
        queue->first = queue->last = id;
        transfer(model, id);
    } else {
        model->behind[queue->last] = id;
        queue->last = id;
    }
}

static void leave_queue(struct flow_model *model, uint32_t id)
{
    struct queue *queue = &model->queues[flow_of(model, id)->queue];
    queue->first = model->behind[id];
    if (queue->first != NO_MESSAGE)
        transfer(model, queue->first);
}

static void transferred(struct flow_model *model, uint32_t id)
{
    const struct flow_shape *shape = shape_of(model, id);
    model->flow_bytes[operation_of(model, id)->flow] += shape->size_bytes;
    model->bytes += shape->size_bytes;
    add_event(model, model->now + shape->deliver_ps, DELIVERED, id);
    add_event(model, model->now + shape->complete_ps, COMPLETED, id);
    leave_queue(model, id);
}

/* ---- the graph ------------------------------------------------------------------- */

static bool is_work(const struct flow_model *model, uint32_t id)
{
    return flow_of(model, id)->route == FLOW_NO_ROUTE;
}

/* The time at which the device has served the work, after that before it. */
static picoseconds served(struct flow_model *model, uint32_t id)
{
    picoseconds *busy_until = &model->busy_until[flow_of(model, id)->device];
    *busy_until = *busy_until > model->now ? *busy_until : model->now;
    return *busy_until += shape_of(model, id)->busy_ps;
}

static void start(struct flow_model *model, uint32_t id)
{
    const struct flow_shape *shape = shape_of(model, id);
    model->records[id].started_ps = model->now;
    if (is_work(model, id)) {
        picoseconds from = shape->busy_ps ? served(model, id) : model->now;
        add_event(model, from + shape->duration_ps, COMPLETED, id);
    } else if (shape->lead_ps) {
        add_event(model, model->now + shape->lead_ps, READY, id);
    } else {
        enter_queue(model, id);
    }
}

static void over(struct flow_model *model, uint32_t id, enum flow_status status)
{
    struct flow_record *record = &model->records[id];
    record->status = (int32_t)status;
    record->completed_ps = model->now;
    model->remaining--;
    if (--model->flow_left[operation_of(model, id)->flow] == 0)
        model->flows_done++;
}

/* Skips an operation, and all that wait for it, directly or through others. */
static void skip(struct flow_model *model, uint32_t id)
{
    over(model, id, FLOW_SKIPPED);
    model->behind[id] = NO_MESSAGE;
    for (uint32_t last = id; id != NO_MESSAGE; id = model->behind[id]) {
        const struct flow_operation *operation = operation_of(model, id);
        for (uint32_t i = 0; i < operation->dependent_count; i++) {
            uint32_t waiting = model->workload.dependents[operation->first_dependent + i];
            if (model->records[waiting].status != FLOW_PENDING)
                continue;
            over(model, waiting, FLOW_SKIPPED);
            model->behind[waiting] = NO_MESSAGE;
            model->behind[last] = waiting;
            last = waiting;
        }
    }
}

static void start_in_time(struct flow_model *model, uint32_t id)
{
    const struct flow_operation *operation = operation_of(model, id);
    if (operation->not_before_ps > model->now)
        add_event(model, operation->not_before_ps, START, id);
    else if (operation->not_after_ps && operation->not_after_ps < model->now)
        skip(model, id);
    else
        start(model, id);
}

/* The receiver of a message waits for its delivery, everyone else for its completion. */
static bool waits_for_delivery(const struct flow_model *model, uint32_t waiting, uint32_t id)
{
    uint32_t host = flow_of(model, waiting)->host;
    return host != flow_of(model, id)->host && host == flow_of(model, id)->far;
}

static void release_dependents(struct flow_model *model, uint32_t id, bool by_delivery)
{
    const struct flow_operation *operation = operation_of(model, id);
    for (uint32_t i = 0; i < operation->dependent_count; i++) {
        uint32_t waiting = model->workload.dependents[operation->first_dependent + i];
        if (waits_for_delivery(model, waiting, id) == by_delivery && --model->unmet[waiting] == 0)
            start_in_time(model, waiting);
    }
}

static void happen(struct flow_model *model, const struct event *event)
{
    uint32_t id = event->operation;
    switch (event->moment) {
    case START:
        start(model, id);
        break;
    case READY:
        enter_queue(model, id);
        break;
    case DELIVERED:
        model->records[id].delivered_ps = model->now;
        release_dependents(model, id, true);
        break;
    case COMPLETED:
        over(model, id, FLOW_SUCCESS);
        if (is_work(model, id))
            model->records[id].delivered_ps = model->now;
        release_dependents(model, id, false);
        break;
    }
}

/* ---- samples -------------------------------------------------------------------- */

bool flow_model_sample(struct flow_model *model, int64_t interval_ps, uint32_t capacity,
                       bool with_flows)
{
    struct samples *samples = &model->samples;
    uint32_t flows = with_flows ? model->workload.flow_count : 0;
    samples->columns = 1 + model->network->links + flows;
    samples->values = malloc((size_t)capacity * samples->columns * sizeof *samples->values);
    samples->capacity = capacity;
    samples->interval = interval_ps;
    samples->with_flows = with_flows;
    samples->next = samples->values ? 0 : NEVER;
    return samples->values != NULL;
}

/* The payload of the message at the head of a queue that has been transferred so far. */
static double part_of(const struct flow_model *model, uint32_t id, picoseconds now)
{
    const struct flow_shape *shape = shape_of(model, id);
    uint32_t route = (uint32_t)flow_of(model, id)->route;
    const struct transfers *transfers = &model->transfers;
    if (!finish_heap_has(&transfers->ends, route))
        return 0;
    double left = transfers_left(transfers, id, route, now) / shape->wire_bytes;
    return left < 0 ? (double)shape->size_bytes
                    : (left > 1 ? 0 : (1 - left) * (double)shape->size_bytes);
}

static void sample_flows(const struct flow_model *model, double *row, picoseconds now)
{
    for (uint32_t flow = 0; flow < model->workload.flow_count; flow++)
        row[flow] = (double)model->flow_bytes[flow];
    for (uint32_t queue = 0; queue < model->workload.queue_count; queue++) {
        uint32_t id = model->queues[queue].first;
        if (id != NO_MESSAGE)
            row[operation_of(model, id)->flow] += part_of(model, id, now);
    }
}

static void keep_every_other(struct samples *samples)
{
    size_t bytes = samples->columns * sizeof *samples->values;
    for (uint32_t row = 1; 2 * row < samples->count; row++)
        memcpy(samples->values + (size_t)row * samples->columns,
               samples->values + (size_t)2 * row * samples->columns, bytes);
    samples->count = (samples->count + 1) / 2;
    samples->interval *= 2;
    samples->next = (picoseconds)samples->count * samples->interval;
}

static void sample(struct flow_model *model)
{
    struct samples *samples = &model->samples;
    double *row = samples->values + (size_t)samples->count * samples->columns;
    row[0] = (double)samples->next;
    for (uint32_t link = 0; link < model->network->links; link++)
        row[1 + link] = max_min_carried(&model->transfers.max_min, link, samples->next);
    if (samples->with_flows)
        sample_flows(model, row + 1 + model->network->links, samples->next);
    samples->next += samples->interval;
    if (++samples->count == samples->capacity)
        keep_every_other(samples);
}

uint32_t flow_model_samples(const struct flow_model *model, const double **values,
                            uint32_t *columns)
{
    *values = model->samples.values;
    *columns = model->samples.columns;
    return model->samples.count;
}

/* ---- running --------------------------------------------------------------------- */

void flow_model_start(struct flow_model *model)
{
    for (uint32_t id = 0; id < model->workload.operation_count; id++)
        if (model->unmet[id] == 0 && model->records[id].status == FLOW_PENDING)
            start_in_time(model, id);
}

static picoseconds next_time(const struct flow_model *model)
{
    picoseconds event = model->event_count ? model->events[0].at : NEVER;
    picoseconds transfer = transfers_next(&model->transfers);
    return event < transfer ? event : transfer;
}

/* All that happens at one instant. A solution comes last, so that it serves all of it. */
static uint64_t run_instant(struct flow_model *model)
{
    uint64_t steps = 1;
    uint32_t ended;
    do {
        while (model->event_count && model->events[0].at <= model->now) {
            struct event event = take_event(model);
            happen(model, &event);
            steps++;
        }
        while ((ended = transfers_take_ended(&model->transfers, model->now)) != NO_MESSAGE) {
            transferred(model, ended);
            steps++;
        }
    } while (model->event_count && model->events[0].at <= model->now);
    return steps + transfers_solve(&model->transfers, model->now);
}

void flow_model_run(struct flow_model *model, int64_t until_ps, uint64_t work)
{
    for (uint64_t done = 0; done < work && !model->failed;) {
        picoseconds at = next_time(model);
        while (model->samples.next < at && model->samples.next <= until_ps && at != NEVER)
            sample(model);
        if (at > until_ps) {
            if (at != NEVER)
                model->now = until_ps;
            return;
        }
        model->now = at;
        done += run_instant(model);
    }
}

void flow_model_look(const struct flow_model *model, struct flow_progress *progress)
{
    *progress = (struct flow_progress){.now_ps = model->now,
                                       .bytes = model->bytes,
                                       .solutions = model->transfers.solutions,
                                       .entries = model->transfers.entries,
                                       .remaining = model->remaining,
                                       .flows_done = model->flows_done,
                                       .failed = model->failed,
                                       .finished = next_time(model) == NEVER};
}

const struct flow_record *flow_model_records(const struct flow_model *model)
{
    return model->records;
}

void flow_model_flow_bytes(const struct flow_model *model, int64_t *bytes)
{
    memcpy(bytes, model->flow_bytes, model->workload.flow_count * sizeof *bytes);
}

void flow_model_link_bytes(const struct flow_model *model, double *bytes)
{
    for (uint32_t link = 0; link < model->network->links; link++)
        bytes[link] = max_min_carried(&model->transfers.max_min, link, model->now);
}
