/* Unreliable datagrams: SENDs of one packet, to and from any queue pair. */
#ifndef EMU_NIC_DATAGRAM_H
#define EMU_NIC_DATAGRAM_H

#include "nic/qp.h"

/* Sets up the path from a NIC to a remote queue pair. On Ethernet packets have the DSCP of `qp`,
 * on InfiniBand the service level `sl`. `remote->psn` is not used. */
void address_init(struct address *address, const struct qp *qp, const struct qp_remote *remote,
                  uint32_t qkey, uint8_t sl);

/* A datagram has arrived. */
void datagram_receive(struct qp *qp, const struct packet *packet, picoseconds now);

#endif
