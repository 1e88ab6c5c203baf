/* End-to-end credits: how many receives are posted, told in every ACK, so that a
 * SEND does not go where nothing waits for it.
 *
 * The AETH's code stands for a number of receives. Together with its MSN, which
 * counts messages that the responder has executed, it says up to which of them
 * the requester may send. */
#ifndef EMU_NIC_CREDITS_H
#define EMU_NIC_CREDITS_H

#include "nic/qp.h"

/* The code for so many receives: that of the largest number that is not above. */
uint8_t credits_code(uint32_t receives);

/* What an ACK says is heeded from now on. */
void credits_received(struct requester *requester, const struct aeth *aeth);

#endif
