/* End-to-end credits: every ACK carries the number of posted receives, so that no SEND arrives
 * without a receive.
 *
 * The AETH's code stands for a number of receives. The AETH's MSN counts the messages that the
 * responder has executed. The sum of both limits how many messages the requester may send. */
#ifndef EMU_NIC_CREDITS_H
#define EMU_NIC_CREDITS_H

#include "nic/qp.h"

/* The code for so many receives, rounded down to a number that has a code. */
uint8_t credits_code(uint32_t receives);

/* The requester keeps to the limit in this ACK from now on. */
void credits_received(struct requester *requester, const struct aeth *aeth);

#endif
