#include "switch/fecn.h"

enum { BTH_FLAGS = 4, FECN_BIT = 0x80 };

static uint32_t flags_offset(const struct frame *frame)
{
    return route_bytes(frame->bytes) + BTH_FLAGS;
}

/* Whether the port is a victim of congestion elsewhere. A victim uses each credit at once: it never
 * has credit for two packets, nor for as many bytes as the threshold. */
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
