/* The settings and routes of a switch, as Python sees them: plain prototypes, which the binding
 * reads. Times are emulated picoseconds, sizes bytes. Ports are numbered from 1. Settings must be
 * made before the fabric starts. */
#ifndef EMU_SWITCH_SWITCH_API_H
#define EMU_SWITCH_SWITCH_API_H

#include <stdbool.h>
#include <stdint.h>

struct fabric_switch;

void switch_set_buffer(struct fabric_switch *sw, uint64_t shared_bytes, uint32_t reserved_bytes);
/* The threshold of a lossy egress queue: `bytes`, or if 0, alpha times the free pool. */
void switch_set_lossy(struct fabric_switch *sw, uint32_t bytes, uint32_t alpha_1024);
/* The lossless priorities of a port, one bit each, and its thresholds (see buffer.h). */
void switch_set_pfc(struct fabric_switch *sw, uint32_t number, uint8_t priorities,
                    uint32_t headroom_bytes);
void switch_set_xoff(struct fabric_switch *sw, uint32_t number, uint32_t bytes, uint32_t alpha_1024,
                     uint32_t xon_below_xoff);
void switch_set_wred(struct fabric_switch *sw, uint32_t number, uint8_t queue, uint32_t kmin_bytes,
                     uint32_t kmax_bytes, uint32_t pmax_2_32, uint32_t seed);
/* `action`: enum watchdog_action. */
void switch_set_watchdog(struct fabric_switch *sw, uint8_t action, int64_t detection_ps,
                         int64_t restoration_ps, int64_t poll_ps);
/* Whether WRED of a port uses the queue depth after a packet has left, not before it joins. */
void switch_set_dequeue_marking(struct fabric_switch *sw, uint32_t number, bool at_dequeue);
void switch_set_strict(struct fabric_switch *sw, uint8_t queue);
/* The bytes that a queue without strict priority may send in a round of its port. */
void switch_set_quantum(struct fabric_switch *sw, uint8_t queue, uint32_t bytes);
/* The priorities of frames that arrive at a port (see qos_map.h), and the queues of frames that
 * leave by it. */
void switch_set_qos_map(struct fabric_switch *sw, uint32_t number, bool trusts_pcp,
                        uint8_t default_priority, const uint8_t of_dscp[64],
                        const uint8_t of_pcp[8], const uint8_t queue_of[8]);

/* How one of several equal next hops is chosen (load_balance.h). */
enum load_balance_kind {
    LOAD_BALANCE_ECMP,
    LOAD_BALANCE_ECMP_QP,
    LOAD_BALANCE_PINNED,
    LOAD_BALANCE_FLOWLET,
    LOAD_BALANCE_SPRAY,
    LOAD_BALANCE_ADAPTIVE,
};
/* `gap_ps`: of flowlets. `hints`: whether the transit tag carries the choice to the external
 * datapath. */
bool switch_set_load_balance(struct fabric_switch *sw, int kind, uint64_t seed, int64_t gap_ps,
                             bool hints);
void switch_set_hints(struct fabric_switch *sw, bool hints);
/* InfiniBand: the service levels, one bit each, whose packets choose among the ports of a route
 * after the first. All other packets take the first port. */
void switch_set_balanced_sls(struct fabric_switch *sw, uint16_t sls);
/* Pins a flow to an egress port. The low 16 bits of its addresses and its UDP source port identify
 * it. */
bool switch_pin_flow(struct fabric_switch *sw, uint16_t source, uint16_t destination,
                     uint16_t udp_source, uint16_t port);
void switch_set_mac(struct fabric_switch *sw, uint32_t number, const uint8_t mac[6],
                    const uint8_t far_mac[6]);
/* Sets the egress ports of `many` destinations. A destination is the low 16 bits of an IPv4
 * address, or a LID. */
bool switch_add_routes(struct fabric_switch *sw, const uint16_t *destinations, uint32_t many,
                       const uint16_t *ports, uint16_t count);

/* The same from `at_ps` on; calls must be in order of time. No ports: unreachable. */
bool switch_add_routes_later(struct fabric_switch *sw, int64_t at_ps, const uint16_t *destinations,
                             uint32_t many, const uint16_t *ports, uint16_t count);
/* A switch that runs has been given routes for later: they come into force in their time. */
void switch_routes_added(struct fabric_switch *sw);
/* Numbers and changes that the switch keeps for its routes, now. */
uint32_t switch_routes_kept(const struct fabric_switch *sw);

/* InfiniBand: marks packets of a lane that join more than its threshold, in bytes (fecn.h). */
void switch_set_fecn(struct fabric_switch *sw, uint32_t number, const uint32_t threshold[16],
                     uint16_t marking_rate, uint16_t packet_size, bool marks_as_victim);
/* InfiniBand: P_Keys that may come in by a port, or leave by it (pkey.h); at most 128. */
void switch_set_pkeys(struct fabric_switch *sw, uint32_t number, bool inbound, bool outbound,
                      const uint16_t *keys, uint8_t count);
/* InfiniBand: how long the first packet of a lane waits for credit (0: for ever), and
 * how many in a row may end so before the lane is stalled (0: any number). */
void switch_set_hoq(struct fabric_switch *sw, uint32_t number, int64_t life_ps,
                    uint8_t stall_count);

#endif
