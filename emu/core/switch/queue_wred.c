/* WRED with ECN (wred.h). Marks by the queue depth before the packet joins or, if the port marks at
 * dequeue, by the depth after it has left. */
#include <string.h>

#include "switch/queue_discipline.h"
#include "switch/switch.h"

static uint32_t draw(const struct wred *wred, const uint8_t *header, uint32_t length)
{
    uint32_t words[WRED_DRAW_WORDS] = {0};
    if (length >= WRED_DRAW_OFFSET + sizeof words)
        memcpy(words, header + WRED_DRAW_OFFSET, sizeof words);
    return wred_draw(wred, words);
}

/* Marks a frame by the depth of its queue, which does not contain the frame. */
SELDOM static void mark(struct switch_port *out, uint8_t queue, struct frame *frame)
{
    const struct wred *wred = &out->wred[queue];
    uint8_t *header = frame->bytes + frame->ip;
    if (!frame->ip || ipv4_ecn(header) == ECN_NOT_ECT || ipv4_ecn(header) == ECN_CE)
        return;
    uint32_t depth = (uint32_t)out->queue[queue].bytes;
    if (wred_marks(wred, depth, draw(wred, header, frame->stored - frame->ip))) {
        ipv4_set_ce(header);
        out->counters.ecn_marked[frame->tc]++;
    }
}

static enum queue_verdict join(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    (void)sw;
    if (!out->marks_at_dequeue)
        mark(out, queue, frame);
    return QUEUE_TAKES;
}

static void leave(struct switch_port *out, uint8_t queue, struct frame *frame)
{
    if (out->marks_at_dequeue)
        mark(out, queue, frame);
}

const struct queue_discipline queue_wred = {.join = join, .leave = leave};
