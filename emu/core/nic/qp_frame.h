/* Frames for the packets of a queue pair. */
#ifndef EMU_NIC_QP_FRAME_H
#define EMU_NIC_QP_FRAME_H

#include "nic/qp.h"

/* A frame that has these headers, and room for `payload` bytes with their pad unless these are
 * elided. NULL when the pool is empty. */
struct frame *qp_frame(const struct qp *qp, const struct packet *headers, uint32_t payload);

#endif
