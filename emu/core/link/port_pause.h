/* Pauses at a port: those that its far end asks for, and those that it asks for.
 * The rest of them is in port.h, for the port's owner; here is what the port itself needs. */
#ifndef EMU_LINK_PORT_PAUSE_H
#define EMU_LINK_PORT_PAUSE_H

#include "link/port.h"

void pauses_init(struct port *port);

/* A pause frame is here. */
void pauses_arrived(struct port *port, const struct pause *pause, picoseconds now);
/* The frame that tells all of `pause_to_send`; NULL when there is no memory. */
struct frame *pauses_next_frame(struct port *port);

/* Those that are not over yet count up to `now`. */
void pauses_count_received(struct port *port, picoseconds now);
void pauses_count_sent(struct port *port, picoseconds now);

/* The link is down: nobody pauses anybody. */
void pfc_reset(struct port *port, picoseconds now);

#endif
