/* What PFC and 802.3x share: pauses in both directions.
 *
 *     from the far end   a pause frame ─▶ (pause response) ─▶ `stopped` ─▶ its time ends, or time 0
 *     for the far end    port_pause_peer ─▶ `stopping` ─▶ a pause frame, repeated while that lasts
 *
 * Each priority is stopped by itself; 802.3x stops all of them at once. Functions with the prefix
 * `pauses_` work on the state (pause_state.h), those with `pause_` on one frame
 * (pause_message.h has its format). switch/pfc.c decides when a switch port pauses its far end. */
#ifndef EMU_LINK_PAUSES_H
#define EMU_LINK_PAUSES_H

#include "link/port.h"

/* `init` of flow_control.h. */
bool pauses_init(struct port *port, struct arena *arena, const struct port_config *config);
/* The link is down: ends all pauses in both directions. */
void pauses_reset(struct port *port, picoseconds now);
/* Counts pauses in both directions that are not over yet, up to `now`. */
void pauses_count(struct port *port, picoseconds now);
/* Whether the far end still wants the priority paused, so that no pause frame in flight
 * ends the pause. `length` is not used: see is_held_back in flow_control.h. */
bool pauses_hold_back(const struct port *port, uint8_t priority, uint32_t length);

/* Reads and counts a pause frame that has arrived; false for any other MAC control frame. */
bool pause_received(struct port *port, const struct frame *frame, struct pause *pause);
/* Stops and resumes those priorities of the frame that are in `obeyed`. */
void pauses_obey(struct port *port, const struct pause *pause, uint8_t obeyed, picoseconds now);
/* Makes and counts a frame with this pause, and clears `to_send`. NULL when there is no memory. */
struct frame *pause_frame(struct port *port, const struct pause *pause);
/* A PFC frame with the state of every priority in `to_send`. See next_frame in flow_control.h. */
struct frame *pfc_next_frame(struct port *port);

/* Starts or stops to ignore pauses of a priority. */
void port_ignore_pauses(struct port *port, uint8_t priority, bool ignore, picoseconds now);

/* Makes the far end stop or resume a priority. */
void port_pause_peer(struct port *port, uint8_t priority, bool xoff, picoseconds now);

#endif
