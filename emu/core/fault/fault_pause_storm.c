/* Pause storm: a broken NIC pauses one priority of its switch without end. It repeats the pause
 * before it expires, as flow control does (port_pause_peer). Seen in the field: Guo et al.,
 * SIGCOMM'16, 4.3. */
#include "fault/fault.h"
#include "link/pauses.h"

struct pause_storm {
    struct fault fault;
    uint8_t priority;
    uint64_t counted; /* pause frames that the NIC had sent when last read */
};

static struct pause_storm *storm_of(struct fault *fault)
{
    return container_of(fault, struct pause_storm, fault);
}

static uint64_t sent(const struct pause_storm *storm)
{
    return storm->fault.port->counters->tx_pause[storm->priority];
}

static void count(struct fault *fault)
{
    struct pause_storm *storm = storm_of(fault);
    fault->counts.hits += sent(storm) - storm->counted;
    storm->counted = sent(storm);
}

static void inject(struct fault *fault, picoseconds now)
{
    struct pause_storm *storm = storm_of(fault);
    storm->counted = sent(storm);
    port_pause_peer(fault->port, storm->priority, true, now);
}

static void clear(struct fault *fault, picoseconds now)
{
    port_pause_peer(fault->port, storm_of(fault)->priority, false, now);
}

static const struct parameter_field parameters[] = {PARAMETER_FIELD(pause_storm, priority), {0}};

static const struct fault_ops pause_storm = {
    .name = "pause-storm",
    .bytes = sizeof(struct pause_storm),
    .parameters = parameters,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, pause_storm)
