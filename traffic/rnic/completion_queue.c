#include "completion_queue.h"

#include <stdlib.h>

struct cq {
    struct work_completion *ring;
    uint32_t capacity, first, count;
    bool overrun;
    bool *event;
};

struct cq *cq_new(uint32_t capacity, bool *event)
{
    struct cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return NULL;
    *cq = (struct cq){.ring = calloc(capacity ? capacity : 1, sizeof *cq->ring),
                      .capacity = capacity,
                      .event = event};
    if (cq->ring)
        return cq;
    free(cq);
    return NULL;
}

void cq_free(struct cq *cq)
{
    free(cq->ring);
    free(cq);
}

void cq_put(struct cq *cq, const struct work_completion *completion)
{
    *cq->event = true;
    if (cq->count == cq->capacity)
        cq->overrun = true;
    else
        cq->ring[(cq->first + cq->count++) % cq->capacity] = *completion;
}

bool cq_poll(struct cq *cq, struct work_completion *completion)
{
    if (cq->count == 0)
        return false;
    *completion = cq->ring[cq->first];
    cq->first = (cq->first + 1) % cq->capacity;
    cq->count--;
    return true;
}

bool cq_is_overrun(const struct cq *cq)
{
    return cq->overrun;
}
