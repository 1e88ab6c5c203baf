/* What a receiver records about its peer's messages: when their bytes are in its memory.
 *
 * A workload knows both ends of a pair, and announces each message to the receiver
 * (delivery_expect), in the order in which it posts them. READs and atomics are not announced:
 * their bytes arrive at the requester. An announced message must not be reused, because it may
 * still be delivered when its sender has given it up. */
#ifndef EMU_NIC_DELIVERY_H
#define EMU_NIC_DELIVERY_H

#include "nic/qp.h"

/* `qp` is the receiver. */
void delivery_expect(struct qp *qp, struct message *message);

/* `bytes` more of the next expected message are in memory; `all`: the whole message is. Nothing
 * happens when no message is expected. */
void delivery_record(struct qp *qp, uint32_t bytes, bool all, picoseconds now);

/* The whole message whose last packet had this PSN is in memory, on an unreliable pair. Expected
 * messages before it are lost. */
void delivery_record_late(struct qp *qp, uint32_t psn, uint32_t bytes, picoseconds now);

#endif
