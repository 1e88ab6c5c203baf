#include "switch/vlans.h"

#include <stdlib.h>

#include "headers/ipv4.h"
#include "headers/vlan.h"
#include "sim/frame.h"

enum { BITS = 64 };

bool vlans_add(struct vlans *vlans, uint16_t vid, const uint16_t *members, uint32_t count)
{
    if (!vlans->list)
        vlans->list = calloc(VLANS_MAX, sizeof *vlans->list);
    if (!vlans->list || vlans->count == VLANS_MAX)
        return false;
    struct vlan *vlan = &vlans->list[vlans->count];
    vlan->vid = vid;
    for (uint32_t i = 0; i < count; i++)
        if (members[i] / BITS >= vlan->words)
            vlan->words = members[i] / BITS + 1u;
    vlan->members = calloc(vlan->words + 1, sizeof *vlan->members);
    if (!vlan->members)
        return false;
    for (uint32_t i = 0; i < count; i++)
        vlan->members[members[i] / BITS] |= UINT64_C(1) << members[i] % BITS;
    vlans->count++;
    return true;
}

bool vlans_join(struct vlans *vlans, uint32_t ports, uint32_t number, uint16_t vid)
{
    if (!vlans->of_port)
        vlans->of_port = calloc(ports, sizeof *vlans->of_port);
    if (!vlans->of_port)
        return false;
    for (uint32_t place = 0; place < vlans->count; place++)
        if (vlans->list[place].vid == vid)
            vlans->of_port[number - 1] |= UINT64_C(1) << place;
    return true;
}

void vlans_free(struct vlans *vlans)
{
    for (uint32_t place = 0; place < vlans->count; place++)
        free(vlans->list[place].members);
    free(vlans->list);
    free(vlans->of_port);
    *vlans = (struct vlans){0};
}

static bool has_one_bit(uint64_t bits)
{
    return bits && !(bits & (bits - 1));
}

/* The VLAN of a packet that came in by a port with these VLANs; NULL: none of them. */
static const struct vlan *vlan_of(const struct vlans *vlans, uint64_t of_port, uint16_t vid)
{
    if (!vid)
        return has_one_bit(of_port) ? &vlans->list[__builtin_ctzll(of_port)] : NULL;
    for (uint64_t left = of_port; left; left &= left - 1) {
        const struct vlan *vlan = &vlans->list[__builtin_ctzll(left)];
        if (vlan->vid == vid)
            return vlan;
    }
    return NULL;
}

enum vlan_verdict vlans_check(const struct vlans *vlans, uint32_t number, const struct frame *frame)
{
    uint64_t of_port = vlans->of_port ? vlans->of_port[number - 1] : 0;
    if (!of_port)
        return VLAN_PASSES;
    const struct vlan *vlan = vlan_of(vlans, of_port, vlan_vid(frame->bytes));
    if (!vlan)
        return VLAN_IS_WRONG;
    uint16_t host = (uint16_t)ipv4_destination(frame->bytes + frame->ip);
    bool is_member = host / BITS < vlan->words && vlan->members[host / BITS] >> host % BITS & 1;
    return is_member ? VLAN_PASSES : VLAN_HAS_NO_ROUTE;
}
