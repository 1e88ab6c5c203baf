#include "nic/completion_queue.h"

#include <stdlib.h>

#include "sim/clock.h"

struct cq {
    struct clock *clock;
    struct work_completion *ring;
    uint32_t capacity, first, count;
    picoseconds newest; /* time of the newest entry; later entries are not visible before it */
    struct timer due;   /* set while the oldest entry cannot be polled yet */
    bool overrun;
    bool *event;
};

static void due(struct timer *timer, picoseconds now)
{
    struct cq *cq = container_of(timer, struct cq, due);
    (void)now;
    *cq->event = true;
}

struct cq *cq_new(struct clock *clock, uint32_t capacity, bool *event)
{
    struct cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return NULL;
    *cq = (struct cq){.clock = clock,
                      .ring = calloc(capacity ? capacity : 1, sizeof *cq->ring),
                      .capacity = capacity,
                      .event = event};
    timer_init(&cq->due, due);
    if (cq->ring)
        return cq;
    free(cq);
    return NULL;
}

bool cq_resize(struct cq *cq, uint32_t capacity)
{
    if (capacity < cq->count)
        return false;
    struct work_completion *ring = calloc(capacity ? capacity : 1, sizeof *ring);
    if (!ring)
        return false;
    for (uint32_t i = 0; i < cq->count; i++)
        ring[i] = cq->ring[(cq->first + i) % cq->capacity];
    free(cq->ring);
    cq->ring = ring;
    cq->capacity = capacity;
    cq->first = 0;
    return true;
}

void cq_free(struct cq *cq)
{
    timer_remove(cq->clock, &cq->due);
    free(cq->ring);
    free(cq);
}

/* Sets the event flag as soon as the oldest entry can be polled. */
static void announce(struct cq *cq)
{
    picoseconds at = cq->ring[cq->first].at_ps;
    if (at <= cq->clock->now)
        *cq->event = true;
    else
        timer_set(cq->clock, &cq->due, at);
}

void cq_put(struct cq *cq, const struct work_completion *completion)
{
    if (cq->count == cq->capacity) {
        cq->overrun = true;
        return;
    }
    if (cq->newest < completion->at_ps)
        cq->newest = completion->at_ps;
    struct work_completion *entry = &cq->ring[(cq->first + cq->count++) % cq->capacity];
    *entry = *completion;
    entry->at_ps = cq->newest;
    announce(cq);
}

bool cq_poll(struct cq *cq, struct work_completion *completion)
{
    if (cq->count == 0 || cq->ring[cq->first].at_ps > cq->clock->now)
        return false;
    *completion = cq->ring[cq->first];
    cq->first = (cq->first + 1) % cq->capacity;
    if (--cq->count)
        announce(cq);
    return true;
}

void cq_forget(struct cq *cq, uint32_t qp_num, cq_drop *drop, void *of)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cq->count; i++) {
        const struct work_completion *entry = &cq->ring[(cq->first + i) % cq->capacity];
        if (entry->qp_num == qp_num)
            drop(entry, of);
        else
            cq->ring[(cq->first + kept++) % cq->capacity] = *entry;
    }
    cq->count = kept;
    timer_cancel(&cq->due);
    if (kept)
        announce(cq);
}

bool cq_is_overrun(const struct cq *cq)
{
    return cq->overrun;
}
