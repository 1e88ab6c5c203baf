/* Whose turn it is to send: for each kind of traffic and each class a list of the queue pairs
 * that wait. The NIC's port takes them in order (nic_port.c). */
#ifndef EMU_NIC_TURNS_H
#define EMU_NIC_TURNS_H

#include "nic/qp.h"

/* The queue pair wants to send a packet of this kind; nothing changes if it waits already. The
 * caller kicks the port once its own state is in order. */
void turns_join(struct qp *qp, enum traffic traffic);

/* The first queue pair of this kind and class waits no longer. */
void turns_leave(struct nic *nic, enum traffic traffic, uint8_t tc);

/* The queue pair waits for nothing any more. */
void turns_remove(struct qp *qp);

#endif
