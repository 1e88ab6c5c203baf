/* Link flap: the link is down for a while at the start of every period. */
#include "fault/link_cut.h"

struct link_flap {
    struct link_cut cut;
    picoseconds period_ps, down_ps;
    bool is_down;
    struct timer next_change;
};

static struct link_flap *flap_of(struct fault *fault)
{
    return container_of(fault, struct link_flap, cut.fault);
}

static void go_down(struct link_flap *flap, picoseconds now)
{
    struct fault *fault = &flap->cut.fault;
    flap->is_down = true;
    link_cut_down(fault, now);
    timer_set_common(fault->port->clock, &flap->next_change, now + flap->down_ps);
}

static void come_up(struct link_flap *flap, picoseconds now)
{
    struct fault *fault = &flap->cut.fault;
    flap->is_down = false;
    link_cut_up(fault, now);
    timer_set_common(fault->port->clock, &flap->next_change, now + flap->period_ps - flap->down_ps);
}

static void change(struct timer *timer, picoseconds now)
{
    struct link_flap *flap = container_of(timer, struct link_flap, next_change);
    if (flap->is_down)
        come_up(flap, now);
    else
        go_down(flap, now);
}

static void inject(struct fault *fault, picoseconds now)
{
    struct link_flap *flap = flap_of(fault);
    timer_init(&flap->next_change, change);
    link_cut_init(fault);
    go_down(flap, now);
}

static void clear(struct fault *fault, picoseconds now)
{
    struct link_flap *flap = flap_of(fault);
    timer_cancel(&flap->next_change);
    if (flap->is_down)
        link_cut_up(fault, now);
}

static const struct parameter_field parameters[] = {
    PARAMETER_FIELD(link_flap, period_ps), PARAMETER_FIELD(link_flap, down_ps), {0}};

static const struct fault_ops link_flap = {
    .name = "link-flap",
    .bytes = sizeof(struct link_flap),
    .parameters = parameters,
    .inject = inject,
    .clear = clear,
    .count = link_cut_count,
};

REGISTER(fault_kinds, link_flap)
