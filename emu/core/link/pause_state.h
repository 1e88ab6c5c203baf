/* The pause state of a port (pauses.h). */
#ifndef EMU_LINK_PAUSE_STATE_H
#define EMU_LINK_PAUSE_STATE_H

#include "link/pause_message.h"

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

#endif
