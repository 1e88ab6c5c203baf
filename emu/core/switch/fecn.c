#include "switch/fecn.h"

enum { BTH_FLAGS = 4, FECN_BIT = 0x80 };

static uint32_t flags_offset(const struct frame *frame)
{
    return route_bytes(frame->bytes) + BTH_FLAGS;
}

/* A victim lives from one credit to the next: it never has credit for what is over the threshold,
 * nor for two packets. */
static bool is_victim(const struct fecn *fecn, const struct port *out, const struct frame *frame)
{
    uint32_t two_packets = 2 * frame->length, threshold = fecn->threshold[frame->tc];
    uint32_t plenty = threshold > two_packets ? threshold : two_packets;
    return !credit_may_send(&out->credit.of_class[frame->tc].tx, plenty);
}

static bool is_candidate(const struct fecn *fecn, const struct port *out, const struct frame *frame,
                         uint64_t queued)
{
    return frame->tc != VL_MANAGEMENT && queued >= fecn->threshold[frame->tc] &&
           frame->length >= fecn->packet_size && lrh_has_bth(frame->bytes) &&
           (fecn->marks_as_victim || !is_victim(fecn, out, frame));
}

void fecn_see(struct fecn *fecn, const struct port *out, struct frame *frame, uint64_t queued)
{
    if (!is_candidate(fecn, out, frame, queued))
        return;
    if (fecn->unmarked[frame->tc] < fecn->marking_rate) {
        fecn->unmarked[frame->tc]++;
        return;
    }
    fecn->unmarked[frame->tc] = 0;
    fecn->marked[frame->tc]++;
    frame->bytes[flags_offset(frame)] |= FECN_BIT;
    if (frame_is_whole(frame))
        vcrc_renew(frame->bytes, frame->length);
}
