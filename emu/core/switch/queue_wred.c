#include "switch/queue_wred.h"

#include <string.h>

#include "switch/queue_discipline.h"
#include "switch/switch_state.h"

static void prepare(void *state, uint64_t seed)
{
    struct queue_wred *wred = state;
    for (int queue = 0; queue < CLASSES; queue++) {
        wred->curve[queue].seed = (uint32_t)seed;
        wred->curve[queue].enabled = true;
    }
}

static uint32_t draw(const struct wred *curve, const uint8_t *header, uint32_t length)
{
    uint32_t words[WRED_DRAW_WORDS] = {0};
    if (length >= WRED_DRAW_OFFSET + sizeof words)
        memcpy(words, header + WRED_DRAW_OFFSET, sizeof words);
    return wred_draw(curve, words);
}

/* Marks a frame by the depth of its queue, which does not contain the frame. */
SELDOM static void mark(const struct queue_wred *wred, struct switch_port *out, uint8_t queue,
                        struct frame *frame)
{
    const struct wred *curve = &wred->curve[queue];
    uint8_t *header = frame->bytes + frame->ip;
    if (!frame->ip || ipv4_ecn(header) == ECN_NOT_ECT || ipv4_ecn(header) == ECN_CE)
        return;
    const struct fabric_switch *sw = switch_of(&out->port);
    if (sw->mark && out->external_wred) {
        out->counters->ecn_marked[frame->tc] += sw->mark(sw->external_datapath, out, queue, frame);
        return;
    }
    uint32_t depth = (uint32_t)out->queue[queue].bytes;
    if (wred_marks(curve, depth, draw(curve, header, frame->stored - frame->ip))) {
        ipv4_set_ce(header);
        out->counters->ecn_marked[frame->tc]++;
    }
}

static enum queue_verdict join(void *state, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    const struct queue_wred *wred = state;
    if (!wred->at_dequeue)
        mark(wred, out, queue, frame);
    return QUEUE_TAKES;
}

static void leave(void *state, struct switch_port *out, uint8_t queue, struct frame *frame)
{
    const struct queue_wred *wred = state;
    if (wred->at_dequeue)
        mark(wred, out, queue, frame);
}

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(queue_wred, at_dequeue),
    PARAMETER_OF_EACH(queue_wred, curve, kmin_bytes),
    PARAMETER_OF_EACH(queue_wred, curve, kmax_bytes),
    PARAMETER_OF_EACH(queue_wred, curve, pmax_2_32),
    {0}};

static const struct queue_discipline wred = {
    .name = QUEUE_WRED,
    .phase = QUEUE_MARKS,
    .bytes = sizeof(struct queue_wred),
    .parameters = parameters,
    .prepare = prepare,
    .join = join,
    .leave = leave,
};

REGISTER(queue_disciplines, wred)
