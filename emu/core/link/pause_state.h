/* What a port keeps of pauses, and what PFC and 802.3x do alike with it.
 *
 *     towards us   a pause frame ─▶ (pause response) ─▶ `stopped` ─▶ its time is over, or time 0
 *     from us      port_pause_peer ─▶ `stopping` ─▶ a pause frame, repeated while that lasts
 *
 * Priorities are stopped one by one; 802.3x stops all of them at once. Functions whose names begin
 * with `pauses_` work on the state; those with `pause_` on one frame. */
#ifndef EMU_LINK_PAUSE_STATE_H
#define EMU_LINK_PAUSE_STATE_H

#include "link/pause.h"

struct port;

struct pause_state {
    uint8_t obeyed;       /* priorities that the far end may pause */
    uint8_t ignored;      /* those of them that are sent all the same */
    uint8_t near;         /* priorities whose pause has arrived and is not obeyed yet */
    uint8_t to_send;      /* priorities whose state the far end must be told */
    bool of_link;         /* 802.3x: a pause is counted once, not once a priority */
    picoseconds response; /* from a pause frame's arrival until we obey */
    /* Towards us: from when, and how long we may not send. */
    picoseconds until[PRIORITIES], since[PRIORITIES];
    struct timer due; /* the next moment at which a pause begins or ends */
    /* From us. */
    picoseconds stopping_since[PRIORITIES];
    struct timer refresh; /* a pause that lasts is repeated */
};

void pauses_init(struct port *port);
/* The link is down: nobody pauses anybody. */
void pauses_reset(struct port *port, picoseconds now);
/* Pauses in both directions that are not over yet count up to `now`. */
void pauses_count(struct port *port, picoseconds now);
/* Whether the far end pauses a priority still, by its own account. */
bool pauses_hold_back(const struct port *port, uint8_t priority, uint32_t length);

/* Reads a pause frame that has arrived, and counts it; false for any other MAC control frame. */
bool pause_received(struct port *port, const struct frame *frame, struct pause *pause);
/* Stops and resumes priorities as the frame says, as far as they are `obeyed`. */
void pauses_obey(struct port *port, const struct pause *pause, uint8_t obeyed, picoseconds now);
/* The frame with this pause, counted; nothing is left to send then. NULL: there is no memory. */
struct frame *pause_frame(struct port *port, const struct pause *pause);
/* The PFC frame with the state of every priority in `to_send`. See flow_control.h. */
struct frame *pfc_next_frame(struct port *port);

#endif
