/* The pause state of a port, and the functions that PFC and 802.3x share.
 *
 *     from the far end   a pause frame ─▶ (pause response) ─▶ `stopped` ─▶ its time ends, or time 0
 *     for the far end    port_pause_peer ─▶ `stopping` ─▶ a pause frame, repeated while that lasts
 *
 * Each priority is stopped by itself; 802.3x stops all of them at once. Functions with the prefix
 * `pauses_` work on the state, those with `pause_` on one frame. */
#ifndef EMU_LINK_PAUSE_STATE_H
#define EMU_LINK_PAUSE_STATE_H

#include "link/pause.h"

struct port;
struct port_config;

struct pause_state {
    uint8_t obeyed;       /* priorities that the far end may pause */
    uint8_t ignored;      /* priorities of `obeyed` that are sent in spite of a pause */
    uint8_t near;         /* priorities whose pause has arrived and is not obeyed yet */
    uint8_t to_send;      /* priorities whose state must be sent to the far end */
    bool of_link;         /* 802.3x: the gauge counts a pause once, not per priority */
    picoseconds response; /* from the arrival of a pause frame until the port obeys it */
    /* Pauses from the far end: the end, and the start of the time that is not counted yet. */
    picoseconds until[PRIORITIES], since[PRIORITIES];
    struct timer due; /* the next moment at which a pause begins or ends */
    /* Pauses for the far end. */
    picoseconds stopping_since[PRIORITIES];
    struct timer refresh; /* repeats a pause that lasts */
};

void pauses_init(struct port *port, const struct port_config *config);
/* The link is down: ends all pauses in both directions. */
void pauses_reset(struct port *port, picoseconds now);
/* Counts pauses in both directions that are not over yet, up to `now`. */
void pauses_count(struct port *port, picoseconds now);
/* Whether the far end still wants the priority paused, so that no frame on its way ends the pause.
 */
bool pauses_hold_back(const struct port *port, uint8_t priority, uint32_t length);

/* Reads and counts a pause frame that has arrived; false for any other MAC control frame. */
bool pause_received(struct port *port, const struct frame *frame, struct pause *pause);
/* Stops and resumes those priorities of the frame that are in `obeyed`. */
void pauses_obey(struct port *port, const struct pause *pause, uint8_t obeyed, picoseconds now);
/* Makes and counts a frame with this pause, and clears `to_send`. NULL when there is no memory. */
struct frame *pause_frame(struct port *port, const struct pause *pause);
/* A PFC frame with the state of every priority in `to_send`. See next_frame in flow_control.h. */
struct frame *pfc_next_frame(struct port *port);

#endif
