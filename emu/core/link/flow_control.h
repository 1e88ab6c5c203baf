/* Link-level flow control: when a port may send, and how it stops its far end.
 *
 *     none      the port may always send; pause frames that arrive are counted and not obeyed
 *     PFC       not while the far end has paused the priority of the frame
 *     pause     not while the far end has paused the link (802.3x)
 *     credits   if the far end has advertised room for the frame (InfiniBand)
 *
 * Each is a table of operations in a file of its own. A port uses its flow control only through
 * this table, and calls the operations at the same moments for every kind:
 *
 *     sending    the next frame of flow control itself? ─▶ may this data frame leave? ─▶ sent
 *     receiving  a frame of flow control: arrived │ a data frame: received ... released
 *
 * Between `received` and `released` a data frame occupies a buffer. If `held` is set, that is a
 * buffer of the port, one for each class, and flow control accounts for it. Otherwise the buffer
 * belongs to the owner of the port, which decides itself when the far end must stop
 * (port_pause_peer).
 *
 * Flow control does not depend on the framing (framing.h): the framing puts a message of flow
 * control into a frame. */
#ifndef EMU_LINK_FLOW_CONTROL_H
#define EMU_LINK_FLOW_CONTROL_H

#include "sim/arena.h"
#include "sim/frame.h"

enum flow_control_kind {
    FLOW_CONTROL_NONE,
    FLOW_CONTROL_PFC,
    FLOW_CONTROL_PAUSE,
    FLOW_CONTROL_CREDITS,
    FLOW_CONTROLS,
};

struct port;
struct port_config;

/* Where an operation may be NULL, its comment says what that means. */
struct flow_control_ops {
    /* Set-up only: prepares the port for this flow control. False when there is no memory. */
    bool (*init)(struct port *port, struct arena *arena, const struct port_config *config);
    /* The link has come up. The port tries to send right afterwards. NULL: no frame is needed at
     * the start. */
    void (*start)(struct port *port, picoseconds now);
    /* The link is down. Both ends start from the initial state when it comes back. */
    void (*reset)(struct port *port, picoseconds now);

    /* Whether a data frame of this class and length may leave now. The first refusal adds the class
     * to `stopped` of the port. NULL: a frame may leave unless its class is in `stopped`. */
    bool (*may_send)(struct port *port, uint8_t tc, uint32_t length, picoseconds now);
    /* A data frame leaves. NULL: nothing to do. */
    void (*sent)(struct port *port, const struct frame *frame, picoseconds now);
    /* A class has nothing left to send, because its frames were dropped. NULL: nothing to do. */
    void (*emptied)(struct port *port, uint8_t tc, picoseconds now);

    /* A frame of flow control has arrived. */
    void (*arrived)(struct port *port, const struct frame *frame, picoseconds now);
    /* The next frame of flow control itself. Called while `control_to_send` of the port is set; the
     * last frame clears it. Returns NULL when there is no memory. */
    struct frame *(*next_frame)(struct port *port);

    /* A data frame has arrived; false when it breaks the rules. NULL: there are no rules. */
    bool (*received)(struct port *port, const struct frame *frame);
    /* The buffer space of a received data frame is free again. NULL: nothing to do. */
    void (*released)(struct port *port, uint8_t tc, uint32_t length, picoseconds now);
    /* Bytes of the port's buffer that a class occupies. NULL: the buffers belong to the owner. */
    uint64_t (*held)(const struct port *port, uint8_t tc);
    /* Bytes of that buffer that a frame of `length` bytes occupies. Set together with `held`. */
    uint32_t (*space)(uint32_t length);
    /* Whether only the far end can let the next frame of a class, `length` bytes long, leave. False
     * also when a message that is already on the cable may do so. */
    bool (*is_held_back)(const struct port *port, uint8_t tc, uint32_t length);

    /* The time between messages that a port sends without any reason; 0: none are due. NULL: it
     * never sends such. */
    picoseconds (*upkeep_period)(const struct port *port);
    /* They have been sent and have arrived for `span`. Set together with `upkeep_period`, and
     * called only if such messages are due. */
    void (*count_upkeep)(struct port *port, picoseconds span);

    /* Counts the time up to `now` during which classes were stopped, here and at the far end. */
    void (*count_stops)(struct port *port, picoseconds now);
};

extern const struct flow_control_ops flow_control_none, flow_control_pfc, flow_control_pause,
    flow_control_credits;

/* Indexed by enum flow_control_kind. */
extern const struct flow_control_ops *const flow_controls[FLOW_CONTROLS];

#endif
