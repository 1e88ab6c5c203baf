#include "link/flow_control.h"

const struct flow_control_ops *const flow_controls[FLOW_CONTROLS] = {
    [FLOW_CONTROL_NONE] = &flow_control_none,
    [FLOW_CONTROL_PFC] = &flow_control_pfc,
    [FLOW_CONTROL_PAUSE] = &flow_control_pause,
    [FLOW_CONTROL_CREDITS] = &flow_control_credits,
};
