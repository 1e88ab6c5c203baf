/* What Python sees of the fabric: plain prototypes, read by the binding as they
 * stand here. Times are emulated picoseconds, sizes bytes, rates bits/s.
 *
 * Order of use: fabric_new, add nodes, set them up, connect, fabric_start; then
 * fabric_run (virtual clock) or a driver (live.h). All set-up calls that can
 * fail say so by NULL or false: no memory. Every port has an index, given by
 * the caller, which must be unique and below the number passed to fabric_new. */
#ifndef EMU_API_H
#define EMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_switch;
struct clock;
struct nic;
struct nic_config;
struct fault;

struct fabric *fabric_new(uint64_t seed, uint32_t ports, uint32_t small_frames,
                          uint32_t large_frames, uint32_t frame_bytes);
void fabric_free(struct fabric *fabric);

/* A switch; its ports are numbered from 1 and get the indices from first_index on. */
struct fabric_switch *fabric_add_switch(struct fabric *fabric, bool infiniband, uint32_t ports,
                                        uint32_t first_index, int64_t latency_ps, bool cut_through);
void switch_set_buffer(struct fabric_switch *sw, uint64_t shared_bytes, uint32_t reserved_bytes);
/* What a lossy egress queue may hold: so many bytes, or if 0, alpha of the free pool. */
void switch_set_lossy(struct fabric_switch *sw, uint32_t bytes, uint32_t alpha_1024);
/* Lossless priorities of a port, a bit each, and where it pauses (see buffer.h). */
void switch_set_pfc(struct fabric_switch *sw, uint32_t number, uint8_t priorities,
                    uint32_t headroom_bytes);
void switch_set_xoff(struct fabric_switch *sw, uint32_t number, uint32_t bytes, uint32_t alpha_1024,
                     uint32_t xon_below_xoff);
void switch_set_wred(struct fabric_switch *sw, uint32_t number, uint8_t queue, uint32_t kmin_bytes,
                     uint32_t kmax_bytes, uint32_t pmax_2_32, uint32_t seed);
/* action: enum watchdog_action. */
void switch_set_watchdog(struct fabric_switch *sw, uint8_t action, int64_t detection_ps,
                         int64_t restoration_ps, int64_t poll_ps);
/* Whether a port's WRED goes by what a packet leaves behind, rather than what it finds. */
void switch_set_dequeue_marking(struct fabric_switch *sw, uint32_t number, bool at_dequeue);
void switch_set_strict(struct fabric_switch *sw, uint8_t queue);
/* Bytes that a queue which is not strict may send in a round of its port. */
void switch_set_quantum(struct fabric_switch *sw, uint8_t queue, uint32_t bytes);
/* Priorities of what comes in by a port (see classes.h), queues of what leaves by it. */
void switch_set_classes(struct fabric_switch *sw, uint32_t number, bool trusts_pcp, uint8_t untold,
                        const uint8_t of_dscp[64], const uint8_t of_pcp[8],
                        const uint8_t queue_of[8]);

/* How a packet's next hop is chosen among equal ones (balance.h). */
enum balance_kind {
    BALANCE_ECMP,
    BALANCE_ECMP_QP,
    BALANCE_PINNED,
    BALANCE_FLOWLET,
    BALANCE_SPRAY,
    BALANCE_ADAPTIVE,
};
/* gap_ps: of flowlets. hints: whether the outer plane is told the choice in the transit tag. */
bool switch_set_balance(struct fabric_switch *sw, int kind, uint64_t seed, int64_t gap_ps,
                        bool hints);
void switch_set_hints(struct fabric_switch *sw, bool hints);
/* InfiniBand: service levels, a bit each, whose packets' next hop is chosen among the ports of a
 * route but the first, which is the one that all others take. */
void switch_set_balanced_sls(struct fabric_switch *sw, uint16_t sls);
/* The flow between two addresses (their low 16 bits) with this UDP source port leaves by `port`. */
bool switch_pin_flow(struct fabric_switch *sw, uint16_t source, uint16_t destination,
                     uint16_t udp_source, uint16_t port);
void switch_set_mac(struct fabric_switch *sw, uint32_t number, const uint8_t mac[6],
                    const uint8_t far_mac[6]);
/* The same ports for `many` destinations. Destination: the low 16 bits of an IPv4 address, or a
 * LID. Ports: numbers, 1 ... */
bool switch_add_routes(struct fabric_switch *sw, const uint16_t *destinations, uint32_t many,
                       const uint16_t *ports, uint16_t count);

/* The same from a time on; calls in order of their times. No ports: unreachable. */
bool switch_add_routes_later(struct fabric_switch *sw, int64_t at_ps, const uint16_t *destinations,
                             uint32_t many, const uint16_t *ports, uint16_t count);
/* A switch that runs has been given routes for later: they come into force in their time. */
void switch_routes_added(struct fabric_switch *sw);
/* Numbers and changes that the switch keeps for its routes, now. */
uint32_t switch_routes_kept(const struct fabric_switch *sw);

/* The end of a cable whose node is in another process: frames come and go by a driver. */
bool fabric_add_socket(struct fabric *fabric, uint32_t index, bool infiniband);

/* A NIC with one port; set up further by rnic_api.h. The fabric frees it. */
struct nic *fabric_add_nic(struct fabric *fabric, uint32_t index, const struct nic_config *config);

/* InfiniBand: lanes of the cable, data VLs of a port, and the receive buffer behind each VL. */
void fabric_set_lanes(struct fabric *fabric, uint32_t index, uint8_t width, uint8_t vls,
                      uint32_t buffer_bytes);
void fabric_set_lane_buffer(struct fabric *fabric, uint32_t index, uint8_t vl,
                            uint32_t buffer_bytes);
/* InfiniBand: the lane on which packets of a service level leave a port; 15: none. */
void fabric_set_sl2vl(struct fabric *fabric, uint32_t index, const uint8_t sl2vl[16]);
/* InfiniBand: VL arbitration. Lists of (VL, weight) pairs, at most 64 each. */
bool fabric_set_vlarb(struct fabric *fabric, uint32_t index, const uint8_t (*high)[2],
                      uint8_t highs, const uint8_t (*low)[2], uint8_t lows, uint8_t limit);
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
/* Ethernet: a port obeys and sends either PFC, for these priorities, or 802.3x pauses;
 * it obeys so long after a pause frame has arrived. */
void fabric_set_pause(struct fabric *fabric, uint32_t index, bool global, uint8_t priorities,
                      int64_t response_ps);

/* A cable, both directions. */
void fabric_connect(struct fabric *fabric, uint32_t index_a, uint32_t index_b, uint64_t rate_bps,
                    int64_t delay_ps);

/* Looks for PFC deadlocks that often (deadlock.h). */
bool fabric_watch_deadlocks(struct fabric *fabric, int64_t interval_ps);
uint32_t fabric_deadlocks(const struct fabric *fabric);
/* One of those found: the ports of its circle, by their indices; returns how many. */
uint32_t fabric_deadlock(const struct fabric *fabric, uint32_t which, int64_t *found_at_ps,
                         uint8_t *priority, const uint32_t **indices);

/* Captures what passes the port, in and out; see tap.h for the records. */
bool fabric_capture(struct fabric *fabric, uint32_t index, size_t ring_bytes);
void fabric_capture_end(struct fabric *fabric, uint32_t index);
/* These four may be called by another thread than the one that runs the fabric, once the first
 * capture has begun; of those that take out, one at a time. */
size_t fabric_captured(struct fabric *fabric, const uint8_t **bytes);
void fabric_captured_taken(struct fabric *fabric, size_t size);
uint64_t fabric_captures_missed(const struct fabric *fabric);
uint64_t fabric_captures_missed_at(const struct fabric *fabric, uint32_t index);

/* Samples the ports with these indices, and `flows` counters, into `capacity` rows. */
bool fabric_sample(struct fabric *fabric, int64_t interval_ps, uint32_t capacity,
                   const uint32_t *indices, uint32_t ports, const uint64_t *flow_bytes,
                   uint32_t flows);
/* How many there are, and where their rows of so many columns are, in order of time. */
uint32_t fabric_samples(const struct fabric *fabric, const int64_t **values,
                        const uint32_t **places, uint32_t *columns);
void fabric_sample_now(struct fabric *fabric);

/* Touches the memory of samples, captures and of so many frames of either size, lest page
 * faults delay a live run. */
void fabric_prefault(struct fabric *fabric, uint32_t frames);

void fabric_start(struct fabric *fabric);
/* Fires all that is due up to `until_ps`; returns how many events that were. */
uint64_t fabric_run(struct fabric *fabric, int64_t until_ps);
/* The same, and not beyond the instant at which `event` becomes true. */
void fabric_run_to_event(struct fabric *fabric, int64_t until_ps, const bool *event);
/* The same in whole steps, the last of which may end beyond `until_ps`: until a step ends in
 * which `event` became true, or in which captures filled a good part of their memory. */
void fabric_run_steps(struct fabric *fabric, int64_t until_ps, int64_t step_ps, const bool *event);
int64_t fabric_now(const struct fabric *fabric);
int64_t fabric_next_deadline(struct fabric *fabric);
struct clock *fabric_clock(struct fabric *fabric);
uint64_t fabric_frames_exhausted(const struct fabric *fabric);
uint32_t fabric_frames_in_use(const struct fabric *fabric);

/* A frame appears on the cable at port `index` as if its node had sent it now.
 * kind: enum frame_kind. False when it is too long or no frame is free. */
bool fabric_inject(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                   uint32_t length);

/* ---- faults (fault.h) ---- */

enum fault_kind {
    FAULT_LINK_DOWN,
    FAULT_LINK_FLAP,
    FAULT_LOSS,
    FAULT_CORRUPTION,
    FAULT_DUPLICATION,
    FAULT_REORDERING,
    FAULT_DELAY,
    FAULT_FLOW_CONTROL,
    FAULT_PAUSE_STORM,
    FAULT_SLOW_RECEIVER,
    FAULT_WRONG_MAP,
    FAULT_SMALL_HEADROOM,
    FAULT_WRONG_ECN,
    FAULT_IGNORED_CNPS,
};

enum { FAULT_PSNS = 64 };

struct fault_config {
    int kind;       /* enum fault_kind */
    int64_t at_ps;  /* when it begins; now, when that is over */
    int64_t for_ps; /* how long it lasts; 0: until it is cleared */
    uint64_t seed;  /* of what it draws */
    /* Loss, corruption, duplication, reordering, flow control: which packets. */
    uint64_t probability_2_32; /* in units of 2^-32; or */
    uint64_t every;            /* every n-th, not 0; or */
    bool by_psn;               /* the PSNs that follow, each once */
    uint32_t psn_count, psns[FAULT_PSNS];
    bool damages;                   /* flow control: its packets arrive, but damaged */
    int64_t by_ps;                  /* delay, reordering: how much later */
    int64_t period_ps, down_ps;     /* flapping */
    uint8_t priority;               /* pause storm */
    uint64_t rate_bps;              /* slow receiver */
    uint32_t buffer_bytes;          /* of each class, in a slow receiver's NIC */
    uint8_t of_dscp[64], of_pcp[8]; /* wrong map: the priorities of what comes in by the port */
    uint32_t headroom_bytes;        /* small headroom: for each lossless priority of the port */
    uint32_t kmin_bytes[8], kmax_bytes[8], pmax_2_32[8]; /* wrong ECN: by queue, where it marks */
};

struct fault_counts {
    uint64_t packets_seen; /* that it might have hit */
    uint64_t hits;         /* packets it did something to; times a link went down; pauses told */
    uint64_t packets_dropped;
};

/* A fault at port `index`, on the line out of it, or on its cable to `far_index`.
 * The fabric frees it. */
struct fault *fabric_add_fault(struct fabric *fabric, uint32_t index, uint32_t far_index,
                               const struct fault_config *config);
/* True, with the time of the last change, when links went down or came back since the call before.
 * The pointer tells the same, for a driver to look at. */
bool fabric_links_changed(struct fabric *fabric, int64_t *at_ps);
const bool *fabric_links_changed_flag(const struct fabric *fabric);
/* Whether faults let the link at port `index` be. */
bool fabric_link_is_up(const struct fabric *fabric, uint32_t index);
/* Ends it now, or never lets it begin. */
void fabric_clear_fault(struct fabric *fabric, struct fault *fault);
struct fault_counts fault_counted(struct fault *fault);

/* Counters of a port: `counter_count` of them, each with `counter_width` cells
 * (one per class, or 1), `counter_cells` cells in all. */
uint32_t counter_count(void);
const char *counter_name(uint32_t counter);
uint32_t counter_width(uint32_t counter);
uint32_t counter_cells(void);
void fabric_counters(struct fabric *fabric, uint32_t index, int64_t *cells);

/* A look at one class of a port, now: bytes in its egress queue; bytes held of
 * the ingress buffer it fills; whether the far end has paused it; bytes its
 * credit lets it send (InfiniBand). */
uint64_t fabric_queued(const struct fabric *fabric, uint32_t index, uint8_t klass);
uint64_t fabric_held(const struct fabric *fabric, uint32_t index, uint8_t klass);
bool fabric_paused(const struct fabric *fabric, uint32_t index, uint8_t klass);
uint64_t fabric_credit(const struct fabric *fabric, uint32_t index, uint8_t vl);

/* Pieces of the core, to be tested one by one. */
/* The next hop that ECMP gives an IPv4 packet (ecmp.h), of `count` ports. */
uint16_t core_ecmp(uint64_t seed, const uint8_t *header, uint32_t length, const uint16_t *ports,
                   uint16_t count);
uint16_t core_crc16(const uint8_t *bytes, size_t length);
/* The draw (wred.h) of a packet with these 28 bytes from its source address on. */
uint32_t core_wred_draw(uint32_t seed, const uint8_t bytes[28]);
bool core_wred_marks(uint32_t kmin_bytes, uint32_t kmax_bytes, uint32_t pmax_2_32,
                     uint32_t depth_bytes, uint32_t random);

#endif
