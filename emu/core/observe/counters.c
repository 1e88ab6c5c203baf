/* The counters of a port, as a table: name, where its cells stand, how many there
 * are and how far apart. Python gives them the names that operators know. */
#include "observe/counters.h"

#include <assert.h>
#include <string.h>

#include "switch/switch.h"

/* Which struct the offset is of. A switch port begins with its port. */
enum place { IN_PORT, IN_GAUGES, IN_SWITCH_PORT, PLACES };

struct counter {
    const char *name;
    enum place place;
    uint32_t offset, width, stride;
};

#define CELLS(type, member) (sizeof(((type *)0)->member) / sizeof(int64_t))
#define PORT_COUNTER(member)                                                                       \
    {                                                                                              \
#member, IN_PORT, offsetof(struct port, counters.member),                                  \
            CELLS(struct port, counters.member), sizeof(int64_t)                                   \
    }
#define CLASS_COUNTER(member)                                                                      \
    {                                                                                              \
#member, IN_PORT, offsetof(struct port, counters.of_class[0].member), CLASSES,             \
            sizeof(struct class_counters)                                                          \
    }
#define SWITCH_COUNTER(member)                                                                     \
    {                                                                                              \
#member, IN_SWITCH_PORT, offsetof(struct switch_port, counters.member),                    \
            CELLS(struct switch_port, counters.member), sizeof(int64_t)                            \
    }

#define WATCHDOG_COUNTER(member)                                                                   \
    {                                                                                              \
        "watchdog_" #member, IN_SWITCH_PORT,                                                       \
            offsetof(struct switch_port, counters.watchdog.member),                                \
            CELLS(struct switch_port, counters.watchdog.member), sizeof(int64_t)                   \
    }

static const struct counter counters[] = {
    CLASS_COUNTER(rx_packets),
    CLASS_COUNTER(rx_bytes),
    CLASS_COUNTER(tx_packets),
    CLASS_COUNTER(tx_bytes),
    {"tx_wire_bytes", IN_GAUGES, offsetof(struct gauges, tx_wire), 1, sizeof(int64_t)},
    {"queued_bytes", IN_GAUGES, offsetof(struct gauges, queued), 1, sizeof(int64_t)},
    {"held_bytes", IN_GAUGES, offsetof(struct gauges, held), 1, sizeof(int64_t)},
    {"paused", IN_GAUGES, offsetof(struct gauges, paused), 1, sizeof(int64_t)},
    PORT_COUNTER(dropped),
    PORT_COUNTER(rx_pause),
    PORT_COUNTER(tx_pause),
    PORT_COUNTER(rx_pause_frames),
    PORT_COUNTER(tx_pause_frames),
    PORT_COUNTER(rx_global_pause),
    PORT_COUNTER(tx_global_pause),
    PORT_COUNTER(rx_pause_transition),
    PORT_COUNTER(rx_pause_duration),
    PORT_COUNTER(tx_pause_duration),
    PORT_COUNTER(rx_mac_control_unknown),
    PORT_COUNTER(rx_flow_control),
    PORT_COUNTER(tx_flow_control),
    PORT_COUNTER(rx_flow_control_errors),
    PORT_COUNTER(rx_malformed),
    PORT_COUNTER(rx_oversize),
    PORT_COUNTER(rx_crc_errors),
    PORT_COUNTER(rx_credit_violations),
    PORT_COUNTER(link_downed),
    PORT_COUNTER(link_down_discard),
    PORT_COUNTER(xmit_wait),
    SWITCH_COUNTER(rx_buf_discard),
    SWITCH_COUNTER(tx_queue_discard),
    SWITCH_COUNTER(ecn_marked),
    SWITCH_COUNTER(no_route),
    SWITCH_COUNTER(no_lane),
    SWITCH_COUNTER(rcv_constraint_errors),
    SWITCH_COUNTER(xmit_constraint_errors),
    SWITCH_COUNTER(hoq_discard),
    {"fecn_marked", IN_SWITCH_PORT, offsetof(struct switch_port, fecn.marked), CLASSES,
     sizeof(int64_t)},
    SWITCH_COUNTER(vl15_dropped),
    SWITCH_COUNTER(ttl_expired),
    SWITCH_COUNTER(not_ip),
    SWITCH_COUNTER(corrupt),
    SWITCH_COUNTER(transit_lost),
    SWITCH_COUNTER(transit_overflow),
    SWITCH_COUNTER(transit_unknown),
    {"queue_peak_bytes", IN_SWITCH_PORT, offsetof(struct switch_port, queue_peak_bytes), 1,
     sizeof(int64_t)},
    SWITCH_COUNTER(headroom_peak_bytes),
    WATCHDOG_COUNTER(detected),
    WATCHDOG_COUNTER(restored),
    WATCHDOG_COUNTER(tx_packets),
    WATCHDOG_COUNTER(rx_packets),
    WATCHDOG_COUNTER(tx_dropped),
    WATCHDOG_COUNTER(rx_dropped),
    WATCHDOG_COUNTER(tx_packets_before),
    WATCHDOG_COUNTER(rx_packets_before),
    WATCHDOG_COUNTER(tx_dropped_before),
    WATCHDOG_COUNTER(rx_dropped_before),
};

uint32_t counter_count(void)
{
    return sizeof counters / sizeof *counters;
}

const char *counter_name(uint32_t counter)
{
    return counters[counter].name;
}

uint32_t counter_width(uint32_t counter)
{
    return counters[counter].width;
}

uint32_t counter_cells(void)
{
    uint32_t cells = 0;
    for (uint32_t i = 0; i < counter_count(); i++)
        cells += counters[i].width;
    return cells;
}

static int64_t read_cell(const void *place, size_t offset)
{
    int64_t value;
    memcpy(&value, (const uint8_t *)place + offset, sizeof value);
    return value;
}

void port_counters(struct port *port, int64_t now_ps, int64_t *cells)
{
    const void *places[PLACES] = {port, port->gauges, port_of_switch(port)};
    port_settle(port, now_ps);
    for (uint32_t i = 0; i < counter_count(); i++) {
        const struct counter *counter = &counters[i];
        const void *place = places[counter->place];
        for (size_t cell = 0; cell < counter->width; cell++)
            *cells++ = place ? read_cell(place, counter->offset + cell * counter->stride) : 0;
    }
}
