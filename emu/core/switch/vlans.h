/* VLANs of a router, each with a routing table of its own (VRF): a host's packets reach only hosts
 * of the same VLAN.
 *
 *     host ─▶ port with VLANs 10, 20 ─▶ packet of VLAN 10 ─▶ destination in VLAN 10? ─▶ route
 *                                          │                    │ no: vlan_no_route
 *                                          └ another VLAN's tag, or none of its own: vlan_discard
 *
 * The port to a host checks what comes in. Tags stay as they are. Packets without a VID (no tag, or
 * a priority tag, 802.1Q 6.9) belong to the VLAN of the port if it has exactly one. */
#ifndef EMU_SWITCH_VLANS_H
#define EMU_SWITCH_VLANS_H

#include <stdbool.h>
#include <stdint.h>

struct frame;

/* The hosts of a VLAN, one bit for each, by the low 16 bits of their address. */
struct vlan {
    uint16_t vid; /* 0: the hosts that are in no VLAN */
    uint32_t words;
    uint64_t *members;
};

struct vlans {
    struct vlan *list; /* VLANS_MAX; NULL: there are none */
    uint32_t count;
    uint64_t *of_port; /* by port: one bit for each of its VLANs; 0: it checks nothing */
};

enum { VLANS_MAX = 64 };

enum vlan_verdict { VLAN_PASSES, VLAN_IS_WRONG, VLAN_HAS_NO_ROUTE };

/* Set-up only. False when there is no memory, or there are VLANS_MAX. */
bool vlans_add(struct vlans *vlans, uint16_t vid, const uint16_t *members, uint32_t count);
/* Set-up only: port `number` of `ports` is a port of that VLAN, which has been added. */
bool vlans_join(struct vlans *vlans, uint32_t ports, uint32_t number, uint16_t vid);
void vlans_free(struct vlans *vlans);

/* Whether a packet with an IPv4 header may come in by port `number`. */
enum vlan_verdict vlans_check(const struct vlans *vlans, uint32_t number,
                              const struct frame *frame);

#endif
