/* Congestion marks of InfiniBand switches: the FECN bit of the BTH (IBTA vol 1, A10).
 *
 * A port whose queue for a lane has reached a threshold is the root of congestion if it has credit
 * to send, and a victim if it waits for credit. Roots mark packets. Victims mark only if configured
 * to, as on ports to hosts: behind a host that receives slowly there is no other root.
 *
 *     threshold      in bytes, from a value of 1 to 15 (emu/spec/ecn_feedback.py): 15 is one
 *                    sixteenth of the lane's buffer, 1 fifteen sixteenths
 *     marking rate   packets that pass unmarked between two marks
 *     packet size    smaller packets are never marked, nor are raw packets, which have no BTH
 *
 * The queue depth is the one before the packet joins. The ICRC does not cover FECN; the VCRC is
 * renewed. */
#include "switch/queue_discipline.h"
#include "switch/switch_state.h"

enum { BTH_FLAGS = 4, FECN_BIT = 0x80 };

struct fecn {
    uint32_t threshold_bytes[CLASSES]; /* in the queue of a lane */
    uint16_t marking_rate;
    uint16_t packet_bytes; /* of the smallest packet that is marked */
    uint8_t marks_as_victim;
    uint16_t unmarked[CLASSES]; /* packets of a lane since the last mark */
};

static uint32_t flags_offset(const struct frame *frame)
{
    return route_bytes(frame->bytes) + BTH_FLAGS;
}

/* Whether the port is a victim of congestion elsewhere. A victim uses each credit at once: it never
 * has credit for two packets, nor for as many bytes as the threshold. */
static bool is_victim(const struct fecn *fecn, const struct port *out, const struct frame *frame)
{
    uint32_t two_packets = 2 * frame->length, threshold = fecn->threshold_bytes[frame->tc];
    uint32_t plenty = threshold > two_packets ? threshold : two_packets;
    return port_needs_credit(out, frame->tc) &&
           !credit_may_send(&out->credit->of_class[frame->tc].tx, plenty);
}

static bool is_candidate(const struct fecn *fecn, const struct port *out, const struct frame *frame,
                         uint64_t queued)
{
    return frame->tc != VL_MANAGEMENT && queued >= fecn->threshold_bytes[frame->tc] &&
           frame->length >= fecn->packet_bytes && lrh_has_bth(frame->bytes) &&
           (fecn->marks_as_victim || !is_victim(fecn, out, frame));
}

static enum queue_verdict join(void *state, struct switch_port *out, uint8_t queue,
                               struct frame *frame)
{
    struct fecn *fecn = state;
    if (!is_candidate(fecn, &out->port, frame, out->queue[queue].bytes))
        return QUEUE_TAKES;
    if (fecn->unmarked[frame->tc] < fecn->marking_rate) {
        fecn->unmarked[frame->tc]++;
        return QUEUE_TAKES;
    }
    fecn->unmarked[frame->tc] = 0;
    out->counters->fecn_marked[frame->tc]++;
    frame->bytes[flags_offset(frame)] |= FECN_BIT;
    if (frame_is_whole(frame))
        vcrc_renew(frame->bytes, frame->length);
    return QUEUE_TAKES;
}

static const struct parameter_field parameters[] = {PARAMETER_ARRAY(fecn, threshold_bytes),
                                                    PARAMETER_FIELD(fecn, marking_rate),
                                                    PARAMETER_FIELD(fecn, packet_bytes),
                                                    PARAMETER_FIELD(fecn, marks_as_victim),
                                                    {0}};

static const struct queue_discipline fecn = {
    .name = "fecn",
    .phase = QUEUE_MARKS,
    .bytes = sizeof(struct fecn),
    .parameters = parameters,
    .join = join,
};

REGISTER(queue_disciplines, fecn)
