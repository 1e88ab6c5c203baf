#include "switch/pfc_watchdog.h"

enum { PAUSED_PERCENT = 99 };

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
    queue->stuck = is_stuck(&queue->last, now, config->poll) ? queue->stuck + config->poll : 0;
    if (queue->stuck < config->detection)
        return WATCHDOG_AS_BEFORE;
    queue->stormed = true;
    queue->quiet = 0;
    return WATCHDOG_STORM;
}

static enum watchdog_verdict restore(struct watchdog_queue *queue,
                                     const struct watchdog_config *config,
                                     const struct watchdog_sight *now)
{
    queue->quiet = now->rx_pause == queue->last.rx_pause ? queue->quiet + config->poll : 0;
    if (queue->quiet < config->restoration)
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
