#include "fault/link_cut.h"

static struct link_cut *cut_of(struct fault *fault)
{
    return container_of(fault, struct link_cut, fault);
}

static uint64_t discarded(const struct fault *fault)
{
    return fault->port->counters->link_down_discard + fault->far->counters->link_down_discard;
}

void link_cut_init(struct fault *fault)
{
    cut_of(fault)->counted = discarded(fault);
}

void link_cut_count(struct fault *fault)
{
    fault->counts.packets_dropped += discarded(fault) - cut_of(fault)->counted;
    cut_of(fault)->counted = discarded(fault);
}

static void note_change(struct fault *fault, picoseconds now)
{
    fault->all->links_changed = true;
    fault->all->links_changed_at = now;
}

/* Frames that other faults of the cable hold are lost with the link. */
static void lose_held(const struct fault *fault)
{
    for (struct fault *other = fault->all->first; other; other = other->next)
        if (other->ops->link_lost && (other->port == fault->port || other->port == fault->far))
            other->ops->link_lost(other);
}

void link_cut_down(struct fault *fault, picoseconds now)
{
    fault->counts.hits++;
    lose_held(fault);
    port_link_down(fault->port, now);
    port_link_down(fault->far, now);
    note_change(fault, now);
}

void link_cut_up(struct fault *fault, picoseconds now)
{
    port_link_up(fault->port, now);
    port_link_up(fault->far, now);
    note_change(fault, now);
}
