/* An RDMA NIC: queue pairs and registered memory behind one port.
 *
 *     receive() ─▶ framing: CRCs, lengths ─▶ queue pair ─▶ completer │ responder
 *     pull()    ◀─ framing: headers, CRCs ◀─ requester │ response queue ◀─ whose turn is it
 *
 * Turns: CNPs go before acknowledgements, and these before data. Within one
 * kind the classes (priorities or VLs) take turns, within a class the queue
 * pairs, a packet at a time, and within a queue pair requests and READ responses. A class that flow
 * control stops keeps its turns.
 *
 * Where the fabric sets a NIC up: nic_init, then port_connect both ways, then
 * regions, queue pairs and their connections, then port_start. */
#ifndef EMU_NIC_NIC_PORT_H
#define EMU_NIC_NIC_PORT_H

#include "nic/nic.h"

/* Set-up only. False when memory is short, or a class or VID in the config does not exist. */
bool nic_init(struct nic *nic, struct arena *arena, struct clock *clock, struct frame_pool *pool,
              struct rng *rng, const struct nic_config *config);

/* The NIC a port is part of; NULL when it is another's. */
const struct nic *port_of_nic(const struct port *port);

/* Whether a queue pair waits until the port lets it send. */
bool nic_waits_to_send(const struct nic *nic);

/* The queue pair that a frame seems to be for; nothing of it has been checked. May be NULL. */
const struct qp *nic_addressee(const struct nic *nic, const struct frame *frame);

#endif
