/* A link that is down, and one that goes down again and again: both ports of the
 * cable lose it at the same instant (port_link_down), as after a pulled plug.
 * What it counts are the packets that were on the cable, those that waited for it
 * in switches, and those that were still sent to it. */
#include "fault/fault.h"

static uint64_t discarded(const struct fault *fault)
{
    return fault->port->counters.link_down_discard + fault->far->counters.link_down_discard;
}

static void count(struct fault *fault)
{
    fault->counts.packets_dropped += discarded(fault) - fault->before;
    fault->before = discarded(fault);
}

static void note_change(struct fault *fault, picoseconds now)
{
    fault->all->links_changed = true;
    fault->all->links_changed_at = now;
}

/* What other faults hold is on the cable, too. */
static void lose_held(const struct fault *fault)
{
    for (struct fault *other = fault->all->first; other; other = other->next)
        if (other->held.first && (other->port == fault->port || other->port == fault->far))
            fault_lose_held(other);
}

static void down(struct fault *fault, picoseconds now)
{
    fault->counts.hits++;
    lose_held(fault);
    port_link_down(fault->port, now);
    port_link_down(fault->far, now);
    note_change(fault, now);
}

static void up(struct fault *fault, picoseconds now)
{
    port_link_up(fault->port, now);
    port_link_up(fault->far, now);
    note_change(fault, now);
}

static void pull_plug(struct fault *fault, picoseconds now)
{
    fault->before = discarded(fault);
    down(fault, now);
}

const struct fault_ops fault_link_down = {.begin = pull_plug, .end = up, .count = count};

/* ---- flapping: down for `down_ps` at the start of each period ---------------------- */

static void flap_down(struct fault *fault, picoseconds now)
{
    fault->is_down = true;
    down(fault, now);
    timer_set(fault->port->clock, &fault->next_step, now + fault->config.down_ps);
}

static void flap_up(struct fault *fault, picoseconds now)
{
    fault->is_down = false;
    up(fault, now);
    timer_set(fault->port->clock, &fault->next_step,
              now + fault->config.period_ps - fault->config.down_ps);
}

static void flap(struct fault *fault, picoseconds now)
{
    if (fault->is_down)
        flap_up(fault, now);
    else
        flap_down(fault, now);
}

static void begin_flapping(struct fault *fault, picoseconds now)
{
    fault->before = discarded(fault);
    flap_down(fault, now);
}

static void end_flapping(struct fault *fault, picoseconds now)
{
    timer_cancel(&fault->next_step);
    if (fault->is_down)
        up(fault, now);
}

const struct fault_ops fault_link_flap = {
    .begin = begin_flapping, .end = end_flapping, .due = flap, .count = count};
