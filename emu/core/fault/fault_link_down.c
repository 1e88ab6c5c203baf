/* Link down: the cable loses its link until the fault is cleared. A switch without power is this
 * fault on each of its cables. */
#include "fault/link_cut.h"

static void inject(struct fault *fault, picoseconds now)
{
    link_cut_init(fault);
    link_cut_down(fault, now);
}

static const struct fault_ops link_down = {
    .name = "link-down",
    .bytes = sizeof(struct link_cut),
    .inject = inject,
    .clear = link_cut_up,
    .count = link_cut_count,
};

REGISTER(fault_kinds, link_down)
