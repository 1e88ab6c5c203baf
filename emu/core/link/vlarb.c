#include "link/vlarb.h"

#include <stdbool.h>
#include <stddef.h>

static bool entry_may_send(const struct vlarb_entry *entry, uint16_t sendable)
{
    return entry->weight && sendable & 1u << entry->vl;
}

/* Moves the turn to an entry that may send; false when there is none. An entry whose turn is over
 * is tried once more after all others. */
static bool take_turn(struct vlarb_turn *turn, const struct vlarb_list *list, uint16_t sendable)
{
    for (uint8_t looked = 0; looked <= list->count && list->count; looked++) {
        const struct vlarb_entry *entry = &list->entries[turn->entry];
        if (turn->left > 0 && entry_may_send(entry, sendable))
            return true;
        turn->entry = (uint8_t)((turn->entry + 1) % list->count);
        turn->left = list->entries[turn->entry].weight * VLARB_WEIGHT_UNIT;
    }
    return false;
}

static uint8_t serve(struct vlarb *arbiter, struct vlarb_turn *turn, const struct vlarb_list *list)
{
    arbiter->served = turn;
    return list->entries[turn->entry].vl;
}

static int64_t limit_bytes(const struct vlarb_tables *tables)
{
    if (tables->limit == VLARB_UNLIMITED)
        return INT64_MAX;
    return tables->limit ? tables->limit * VLARB_LIMIT_UNIT : 1; /* any packet exceeds 1 */
}

void vlarb_init(struct vlarb *arbiter, const struct vlarb_tables *tables)
{
    *arbiter = (struct vlarb){.high_left = limit_bytes(tables)};
}

uint8_t vlarb_pick(struct vlarb *arbiter, const struct vlarb_tables *tables, uint16_t sendable)
{
    arbiter->served = NULL;
    if (sendable & 1u << VL_MANAGEMENT)
        return VL_MANAGEMENT;
    if (arbiter->high_left > 0 && take_turn(&arbiter->high, &tables->high, sendable))
        return serve(arbiter, &arbiter->high, &tables->high);
    arbiter->high_left = limit_bytes(tables);
    if (take_turn(&arbiter->low, &tables->low, sendable))
        return serve(arbiter, &arbiter->low, &tables->low);
    if (take_turn(&arbiter->high, &tables->high, sendable))
        return serve(arbiter, &arbiter->high, &tables->high);
    return VL_NONE;
}

void vlarb_sent(struct vlarb *arbiter, uint32_t bytes)
{
    if (!arbiter->served)
        return;
    arbiter->served->left -= (int32_t)bytes;
    if (arbiter->served == &arbiter->high)
        arbiter->high_left -= bytes;
}
