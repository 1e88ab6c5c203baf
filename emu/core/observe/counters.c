/* The tables of counters, made from ports.def and nics.def: each row's description, and where its
 * cells are. */
#include "observe/counters.h"

#include <string.h>

#include "nic/nic.h"
#include "switch/egress_queue.h"
#include "switch/switch.h"

/* Which struct an offset is of. */
enum place {
    IN_PORT,
    IN_PORT_COUNTERS,
    IN_GAUGES,
    IN_SWITCH_PORT,
    IN_SWITCH_COUNTERS,
    IN_NIC,
    PLACES
};

#define CELLS(type, member) (sizeof(((type *)0)->member) / sizeof(int64_t))
#define ROW(name_, place_, type, member, cells_, stride_, ...)                                     \
    {.name = (name_),                                                                              \
     .place = (place_),                                                                            \
     .offset = offsetof(type, member),                                                             \
     .cells = (cells_),                                                                            \
     .stride = (stride_),                                                                          \
     __VA_ARGS__},
#define FIELD(name, place, type, member, ...)                                                      \
    ROW(name, place, type, member, CELLS(type, member), sizeof(int64_t), __VA_ARGS__)

#define PORT(field, ...) FIELD(#field, IN_PORT_COUNTERS, struct port_counters, field, __VA_ARGS__)
#define PORT_PER_PRIORITY PORT
#define PORT_PER_CLASS PORT
#define PORT_TRAFFIC(field, ...)                                                                   \
    ROW(#field, IN_PORT, struct port, traffic[0].field, CLASSES, sizeof(struct class_counters),    \
        __VA_ARGS__)
#define PORT_GAUGE(name, field, ...) FIELD(#name, IN_GAUGES, struct gauges, field, __VA_ARGS__)
#define SWITCH(field, ...)                                                                         \
    FIELD(#field, IN_SWITCH_COUNTERS, struct switch_port_counters, field, __VA_ARGS__)
#define SWITCH_PER_CLASS SWITCH
#define SWITCH_FIELD(name, field, ...)                                                             \
    FIELD(#name, IN_SWITCH_PORT, struct switch_port, field, __VA_ARGS__)
#define WATCHDOG(field, ...)                                                                       \
    FIELD("watchdog_" #field, IN_SWITCH_COUNTERS, struct switch_port_counters, watchdog.field,     \
          __VA_ARGS__)
#define PUBLIC(...) {__VA_ARGS__},

static const struct counter ports[] = {
#include "counters/ports.def"
};

#define NIC(field, ...)                                                                            \
    FIELD(#field, IN_NIC, struct nic, counters.field, .roce = #field, .ib = #field, __VA_ARGS__)

static const struct counter nics[] = {
#include "counters/nics.def"
};

enum { PORT_ROWS = sizeof ports / sizeof *ports, NIC_ROWS = sizeof nics / sizeof *nics };

const struct counter *port_counter_table(uint32_t *count)
{
    *count = PORT_ROWS;
    return ports;
}

const struct counter *nic_counter_table(uint32_t *count)
{
    *count = NIC_ROWS;
    return nics;
}

static int64_t read_cell(const void *place, size_t offset)
{
    int64_t value;
    memcpy(&value, (const uint8_t *)place + offset, sizeof value);
    return value;
}

static void read_cells(const struct counter *table, uint32_t rows, const void *const *places,
                       int64_t *cells)
{
    for (const struct counter *counter = table; counter < table + rows; counter++) {
        const void *place = places[counter->place];
        for (size_t cell = 0; cell < counter->cells; cell++)
            *cells++ = place ? read_cell(place, counter->offset + cell * counter->stride) : 0;
    }
}

void port_counter_cells(struct port *port, int64_t now_ps, int64_t *cells)
{
    const struct switch_port *of_switch = port_of_switch(port);
    const void *places[PLACES] = {
        [IN_PORT] = port,
        [IN_PORT_COUNTERS] = port->counters,
        [IN_GAUGES] = port->gauges,
        [IN_SWITCH_PORT] = of_switch,
        [IN_SWITCH_COUNTERS] = of_switch ? of_switch->counters : NULL,
    };
    port_settle(port, now_ps);
    if (of_switch)
        egress_queue_note_peak(switch_port_of(port));
    read_cells(ports, PORT_ROWS, places, cells);
}

void nic_counter_cells(const struct nic *nic, int64_t *cells)
{
    const void *places[PLACES] = {[IN_NIC] = nic};
    read_cells(nics, NIC_ROWS, places, cells);
}
