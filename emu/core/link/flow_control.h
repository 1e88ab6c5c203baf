/* Link-level flow control: when a port may send, and how it tells its far end to wait.
 *
 *     none      always; what the far end asks for is counted and not obeyed
 *     PFC       not while the far end has paused the frame's priority
 *     pause     not while the far end has paused the link (802.3x)
 *     credits   when the far end has room for the frame, as it has advertised (InfiniBand)
 *
 * Each is a table of operations in a file of its own. A port knows its flow control by this table
 * only, and asks it at the same moments whatever it is:
 *
 *     sending    the next frame of flow control itself? ─▶ may this data frame leave? ─▶ sent
 *     receiving  a frame of flow control: arrived │ a data frame: received ... released
 *
 * Between `received` and `released` a data frame occupies a buffer. Where `held` is set, that
 * is a buffer of the port, one for each class, and flow control keeps count of it. Otherwise it is
 * the owner's, which decides itself when the far end shall stop (port_pause_peer).
 *
 * Flow control does not depend on the framing (framing.h): the framing puts a message of flow
 * control into a frame. */
#ifndef EMU_LINK_FLOW_CONTROL_H
#define EMU_LINK_FLOW_CONTROL_H

#include "sim/frame.h"

enum flow_control_kind {
    FLOW_CONTROL_NONE,
    FLOW_CONTROL_PFC,
    FLOW_CONTROL_PAUSE,
    FLOW_CONTROL_CREDITS,
    FLOW_CONTROLS,
};

struct port;

/* Operations that may be NULL say what that means. */
struct flow_control_ops {
    /* Set-up only: the port has this flow control from now on. */
    void (*init)(struct port *port);
    /* The link has come up; the port looks for something to send right afterwards. NULL: nothing
     * has to be said. */
    void (*start)(struct port *port, picoseconds now);
    /* The link is down: both ends begin anew when it comes back. */
    void (*reset)(struct port *port, picoseconds now);

    /* Whether a data frame of this class and length may leave now. From the first refusal on, the
     * class is in `stopped` of the port. NULL: any length may, unless its class is in `stopped`. */
    bool (*may_send)(struct port *port, uint8_t tc, uint32_t length, picoseconds now);
    /* A data frame leaves. NULL: makes no difference. */
    void (*sent)(struct port *port, const struct frame *frame, picoseconds now);
    /* A class has nothing to send any more, though nothing was sent. NULL: makes no difference. */
    void (*emptied)(struct port *port, uint8_t tc, picoseconds now);

    /* A frame of flow control has arrived. */
    void (*arrived)(struct port *port, const struct frame *frame, picoseconds now);
    /* The next frame that flow control has to send. Called while `control_to_send` of the port is
     * set, which this clears with the last one. NULL: there is no memory for it. */
    struct frame *(*next_frame)(struct port *port);

    /* A data frame has arrived; false when it breaks the rule. NULL: there is no such rule. */
    bool (*received)(struct port *port, const struct frame *frame);
    /* The buffer space of one that was received is free again. NULL: makes no difference. */
    void (*released)(struct port *port, uint8_t tc, uint32_t length, picoseconds now);
    /* Bytes of the port's buffer that a class occupies. NULL: buffers are the owner's. */
    uint64_t (*held)(const struct port *port, uint8_t tc);
    /* Bytes of it that a frame occupies. Where `held` is set. */
    uint32_t (*space)(uint32_t length);
    /* Whether the port may not send its next frame of a class, `length` bytes long, until its far
     * end has more room: what is on its way on the cable will not change that. */
    bool (*is_held_back)(const struct port *port, uint8_t tc, uint32_t length);

    /* Counts the time up to `now` for which classes are stopped, here and at the far end. */
    void (*count_stops)(struct port *port, picoseconds now);
};

extern const struct flow_control_ops flow_control_none, flow_control_pfc, flow_control_pause,
    flow_control_credits;

/* By kind. */
extern const struct flow_control_ops *const flow_controls[FLOW_CONTROLS];

#endif
