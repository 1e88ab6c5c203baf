/* InfiniBand's credits at a port: those that it was given, and those that it gives.
 * The rest of them is in port.h, for the port's owner; here is what the port itself needs. */
#ifndef EMU_LINK_PORT_CREDIT_H
#define EMU_LINK_PORT_CREDIT_H

#include "link/port.h"

void credits_init(struct port *port);
/* The link is up: every lane is advertised, now and again and again. */
void credits_start(struct port *port, picoseconds now);

/* A flow-control packet is here. */
void credits_arrived(struct port *port, const struct frame *frame, picoseconds now);
/* The flow-control packet of a lane of `update_to_send`; NULL when there is no memory. */
struct frame *credits_next_frame(struct port *port);
/* A packet takes room in its lane; false when it came without credit. */
bool credits_take(struct port *port, const struct frame *frame);

/* Data that waits for credit has waited up to `now`. */
void credits_count_waits(struct port *port, picoseconds now);

/* The link is down. What is in the buffers stays there; both ends count from 0 again (Op init). */
void credits_forget(struct port *port, picoseconds now);

#endif
