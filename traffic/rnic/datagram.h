/* Unreliable datagrams: SENDs of one packet, to and from any queue pair. */
#ifndef RNIC_DATAGRAM_H
#define RNIC_DATAGRAM_H

#include "qp.h"

/* Set-up only: the way from a NIC to a queue pair elsewhere, in the class of service that
 * `qp` has. `remote->psn` means nothing. */
void address_init(struct address *address, const struct qp *qp, const struct qp_remote *remote,
                  uint32_t qkey);

/* A datagram has arrived. */
void datagram_receive(struct qp *qp, const struct packet *packet, picoseconds now);

#endif
