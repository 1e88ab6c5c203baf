#include "nic/qp_frame.h"

#include "nic/nic.h"

struct frame *qp_frame(const struct qp *qp, const struct packet *headers, uint32_t payload)
{
    struct frame *frame = nic_frame(qp->nic, packet_front_bytes(headers), payload);
    if (frame)
        packet_write_front(nic_frame_body(qp->nic, frame), headers);
    return frame;
}
