#include "switch/pfc_watchdog.h"

#include "link/pauses.h"
#include "switch/egress_queue.h"

enum { PAUSED_PERCENT = 99 };

/* ---- one queue: storm detection ----------------------------------------------- */

static bool is_stuck(const struct watchdog_sight *last, const struct watchdog_sight *now,
                     picoseconds poll)
{
    return now->waiting && now->tx_packets == last->tx_packets &&
           (now->paused - last->paused) * 100 > poll * PAUSED_PERCENT;
}

static enum watchdog_verdict detect(struct watchdog_queue *queue,
                                    const struct watchdog_config *config,
                                    const struct watchdog_sight *now)
{
    queue->stuck =
        is_stuck(&queue->last, now, config->poll_ps) ? queue->stuck + config->poll_ps : 0;
    if (queue->stuck < config->detection_ps)
        return WATCHDOG_AS_BEFORE;
    queue->stormed = true;
    queue->quiet = 0;
    return WATCHDOG_STORM;
}

static enum watchdog_verdict restore(struct watchdog_queue *queue,
                                     const struct watchdog_config *config,
                                     const struct watchdog_sight *now)
{
    queue->quiet = now->rx_pause == queue->last.rx_pause ? queue->quiet + config->poll_ps : 0;
    if (queue->quiet < config->restoration_ps)
        return WATCHDOG_AS_BEFORE;
    queue->stormed = false;
    queue->stuck = 0;
    return WATCHDOG_RESTORED;
}

enum watchdog_verdict watchdog_look(struct watchdog_queue *queue,
                                    const struct watchdog_config *config,
                                    const struct watchdog_sight *now)
{
    enum watchdog_verdict verdict =
        queue->stormed ? restore(queue, config, now) : detect(queue, config, now);
    queue->last = *now;
    return verdict;
}

/* ---- a switch: actions against storms ---------------------------------------- */

static struct watchdog_sight sight(const struct switch_port *own, uint8_t priority)
{
    const struct port_counters *counters = own->port.counters;
    const struct class_counters *packets = &own->port.traffic[priority];
    return (struct watchdog_sight){
        .waiting = own->queue[own->queue_of[priority]].count > 0,
        .tx_packets = packets->tx_packets,
        .rx_packets = packets->rx_packets,
        .rx_pause = counters->rx_pause[priority] + counters->rx_global_pause,
        .paused = counters->rx_pause_duration[priority],
    };
}

static void count_storm(struct watchdog_counters *counters, uint8_t priority)
{
    counters->detected[priority]++;
    counters->tx_packets_before[priority] = counters->tx_packets[priority];
    counters->rx_packets_before[priority] = counters->rx_packets[priority];
    counters->tx_dropped_before[priority] = counters->tx_dropped[priority];
    counters->rx_dropped_before[priority] = counters->rx_dropped[priority];
}

static void storm(struct fabric_switch *sw, struct switch_port *own, uint8_t priority,
                  picoseconds now)
{
    count_storm(&own->counters->watchdog, priority);
    if (sw->config.watchdog.action == WATCHDOG_FORWARD)
        port_ignore_pauses(&own->port, priority, true, now);
    if (sw->config.watchdog.action == WATCHDOG_DROP) {
        own->dropping |= (uint8_t)(1u << priority);
        own->counters->watchdog.tx_dropped[priority] += egress_queue_flush(own, priority, now);
    }
}

static void restored(struct switch_port *own, uint8_t priority, picoseconds now)
{
    own->counters->watchdog.restored[priority]++;
    own->dropping &= (uint8_t) ~(1u << priority);
    port_ignore_pauses(&own->port, priority, false, now);
}

static void count(struct watchdog_counters *counters, uint8_t priority,
                  const struct watchdog_sight *last, const struct watchdog_sight *now)
{
    counters->tx_packets[priority] += now->tx_packets - last->tx_packets;
    counters->rx_packets[priority] += now->rx_packets - last->rx_packets;
}

static void look(struct fabric_switch *sw, struct switch_port *own, uint8_t priority,
                 picoseconds now)
{
    struct watchdog_queue *queue = &own->watchdog[priority];
    struct watchdog_sight seen = sight(own, priority);
    if (queue->stormed)
        count(&own->counters->watchdog, priority, &queue->last, &seen);
    switch (watchdog_look(queue, &sw->config.watchdog, &seen)) {
    case WATCHDOG_STORM:
        storm(sw, own, priority, now);
        break;
    case WATCHDOG_RESTORED:
        restored(own, priority, now);
        break;
    case WATCHDOG_AS_BEFORE:
        break;
    }
}

static void poll_due(struct timer *timer, picoseconds now)
{
    struct fabric_switch *sw = container_of(timer, struct fabric_switch, watchdog_poll);
    for (uint32_t number = 1; number <= sw->config.ports; number++) {
        struct switch_port *own = switch_port(sw, number);
        port_settle(&own->port, now);
        for (unsigned left = own->pfc.priorities; left; left &= left - 1)
            look(sw, own, (uint8_t)__builtin_ctz(left), now);
    }
    timer_set_background(sw->clock, timer, now + sw->config.watchdog.poll_ps);
}

bool pfc_watchdog_init(struct fabric_switch *sw, struct arena *arena)
{
    timer_init(&sw->watchdog_poll, poll_due);
    if (sw->config.watchdog.action == WATCHDOG_OFF)
        return true;
    for (uint32_t number = 1; number <= sw->config.ports; number++) {
        struct switch_port *own = switch_port(sw, number);
        own->watchdog = arena_take(arena, PRIORITIES, sizeof *own->watchdog);
        if (!own->watchdog)
            return false;
    }
    return true;
}

void pfc_watchdog_start(struct fabric_switch *sw, picoseconds now)
{
    if (sw->config.watchdog.action != WATCHDOG_OFF)
        timer_set_background(sw->clock, &sw->watchdog_poll, now + sw->config.watchdog.poll_ps);
}
