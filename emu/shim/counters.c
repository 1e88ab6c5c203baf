/* The counters of a port, as a table: name, where it stands, how many cells.
 * Python gives them the names that operators know. */
#include <assert.h>
#include <string.h>

#include "fabric.h"

enum place { IN_PORT, IN_SWITCH_PORT };

struct counter {
    const char *name;
    enum place place;
    uint32_t offset, width;
};

#define PORT_COUNTER(member)                                                                       \
    {                                                                                              \
#member, IN_PORT, offsetof(struct port_counters, member),                                  \
            sizeof(((struct port_counters *)0)->member) / sizeof(int64_t)                          \
    }
#define SWITCH_COUNTER(member)                                                                     \
    {                                                                                              \
#member, IN_SWITCH_PORT, offsetof(struct switch_port_counters, member),                    \
            sizeof(((struct switch_port_counters *)0)->member) / sizeof(int64_t)                   \
    }

static const struct counter counters[] = {
    PORT_COUNTER(rx_packets),
    PORT_COUNTER(rx_bytes),
    PORT_COUNTER(tx_packets),
    PORT_COUNTER(tx_bytes),
    PORT_COUNTER(tx_wire_bytes),
    PORT_COUNTER(rx_pause),
    PORT_COUNTER(tx_pause),
    PORT_COUNTER(rx_pause_frames),
    PORT_COUNTER(tx_pause_frames),
    PORT_COUNTER(rx_pause_transition),
    PORT_COUNTER(rx_pause_duration),
    PORT_COUNTER(rx_mac_control_unknown),
    PORT_COUNTER(rx_flow_control),
    PORT_COUNTER(tx_flow_control),
    PORT_COUNTER(rx_flow_control_errors),
    PORT_COUNTER(rx_crc_errors),
    PORT_COUNTER(rx_credit_violations),
    PORT_COUNTER(xmit_wait),
    SWITCH_COUNTER(rx_buf_discard),
    SWITCH_COUNTER(tx_queue_discard),
    SWITCH_COUNTER(ecn_marked),
    SWITCH_COUNTER(no_route),
    SWITCH_COUNTER(ttl_expired),
    SWITCH_COUNTER(not_ip),
    SWITCH_COUNTER(corrupt),
    SWITCH_COUNTER(transit_lost),
    SWITCH_COUNTER(transit_overflow),
    SWITCH_COUNTER(transit_unknown),
    SWITCH_COUNTER(queue_peak_bytes),
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

void fabric_counters(struct fabric *fabric, uint32_t index, int64_t *cells)
{
    struct port *port = fabric->ports[index];
    const struct switch_port *own = port_of_switch(port);
    port_settle(port, fabric->clock.now);
    for (uint32_t i = 0; i < counter_count(); i++) {
        const struct counter *counter = &counters[i];
        const uint8_t *from = counter->place == IN_PORT ? (const uint8_t *)&port->counters
                              : own                     ? (const uint8_t *)&own->counters
                                                        : NULL;
        size_t size = counter->width * sizeof *cells;
        if (from)
            memcpy(cells, from + counter->offset, size);
        else
            memset(cells, 0, size);
        cells += counter->width;
    }
}
