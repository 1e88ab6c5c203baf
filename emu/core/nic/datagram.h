/* Unreliable datagrams: SENDs of one packet, to and from any queue pair. */
#ifndef EMU_NIC_DATAGRAM_H
#define EMU_NIC_DATAGRAM_H

#include "nic/qp.h"

/* The way from a NIC to a queue pair elsewhere, in the class of service that `qp` has; on
 * InfiniBand by the service level `sl`. `remote->psn` means nothing. */
void address_init(struct address *address, const struct qp *qp, const struct qp_remote *remote,
                  uint32_t qkey, uint8_t sl);

/* A datagram has arrived. */
void datagram_receive(struct qp *qp, const struct packet *packet, picoseconds now);

#endif
