/* Settings of ports, one call each: used before the fabric starts. */
#include <assert.h>
#include <string.h>

#include "api/fabric.h"

void fabric_set_lanes(struct fabric *fabric, uint32_t index, uint8_t width, uint8_t vls,
                      uint32_t buffer_bytes)
{
    struct port *port = fabric->ports[index];
    port_set_flow_control(port, FLOW_CONTROL_CREDITS);
    port->vls = port->credit.classes = vls;
    port->credit.width = width;
    for (uint8_t vl = 0; vl < vls; vl++)
        fabric_set_lane_buffer(fabric, index, vl, buffer_bytes);
}

void fabric_set_lane_buffer(struct fabric *fabric, uint32_t index, uint8_t vl,
                            uint32_t buffer_bytes)
{
    fabric->ports[index]->credit.of_class[vl].rx.buffer_blocks = buffer_bytes / CREDIT_BLOCK;
}

void fabric_set_sl2vl(struct fabric *fabric, uint32_t index, const uint8_t sl2vl[SLS])
{
    memcpy(fabric->ports[index]->sl2vl, sl2vl, SLS);
}

static void fill_list(struct vlarb_list *list, const uint8_t (*entries)[2], uint8_t count)
{
    assert(count <= VLARB_ENTRIES);
    list->count = count;
    for (uint8_t i = 0; i < count; i++)
        list->entries[i] = (struct vlarb_entry){.vl = entries[i][0], .weight = entries[i][1]};
}

bool fabric_set_vlarb(struct fabric *fabric, uint32_t index, const uint8_t (*high)[2],
                      uint8_t highs, const uint8_t (*low)[2], uint8_t lows, uint8_t limit)
{
    struct port *port = fabric->ports[index];
    struct vlarb_tables *tables = port->vlarb_tables;
    if (!tables)
        tables = port->vlarb_tables = arena_take(&fabric->arena, 1, sizeof *tables);
    if (!tables)
        return false;
    fill_list(&tables->high, high, highs);
    fill_list(&tables->low, low, lows);
    tables->limit = limit;
    return true;
}

void fabric_set_pause(struct fabric *fabric, uint32_t index, bool global, uint8_t priorities,
                      int64_t response_ps)
{
    struct port *port = fabric->ports[index];
    enum flow_control_kind kind = global ? FLOW_CONTROL_PAUSE : FLOW_CONTROL_PFC;
    port_set_flow_control(port, priorities ? kind : FLOW_CONTROL_NONE);
    if (!global)
        port->pause.obeyed = priorities;
    port->pause.response = response_ps;
}
