/* The settings of a switch and its ports, as Python sees them: plain declarations, which the
 * binding reads. A switch gets all of them when it is made. Sizes are bytes, times emulated
 * picoseconds. */
#ifndef EMU_SWITCH_SWITCH_CONFIG_H
#define EMU_SWITCH_SWITCH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "link/port_config.h"
#include "sim/parameter.h"

/* The packet memory (buffer.h). */
struct buffer_config {
    uint64_t shared_bytes;
    uint32_t reserved_bytes; /* per port and class */
};

/* A threshold on the shared pool (buffer.h). */
struct threshold {
    uint32_t bytes;      /* 0: alpha applies */
    uint32_t alpha_1024; /* alpha times 1024 */
};

/* The PFC settings of one port (buffer.h). */
struct pfc_config {
    uint8_t priorities; /* one bit for each lossless priority; 0: PFC is off */
    struct threshold xoff;
    uint32_t xon_below_xoff; /* bytes */
    uint32_t headroom_bytes; /* per lossless priority */
};

/* The PFC watchdog (pfc_watchdog.h). */
enum watchdog_action { WATCHDOG_OFF, WATCHDOG_DROP, WATCHDOG_FORWARD, WATCHDOG_ALERT };

struct watchdog_config {
    uint8_t action; /* enum watchdog_action */
    int64_t detection_ps, restoration_ps, poll_ps;
};

/* The order in which egress queues are served (arbiter.h). */
struct arbiter_config {
    uint16_t strict;      /* one bit for each queue with strict priority */
    uint32_t quantum[16]; /* of the other queues: bytes in a round, at least 1 */
};

/* How one of several equal next hops is chosen (load_balance.h). */
enum load_balance_kind {
    LOAD_BALANCE_ECMP,
    LOAD_BALANCE_ECMP_QP,
    LOAD_BALANCE_PINNED,
    LOAD_BALANCE_FLOWLET,
    LOAD_BALANCE_SPRAY,
    LOAD_BALANCE_ADAPTIVE,
};

struct load_balance_config {
    uint8_t kind;   /* enum load_balance_kind */
    uint64_t seed;  /* for hashes and random numbers */
    int64_t gap_ps; /* of flowlets */
};

/* A discipline of some queues of a port (queue_discipline.h). */
struct queue_discipline_config {
    const char *name; /* name and parameters are read when the switch is made, and not kept */
    uint16_t queues;  /* one bit for each */
    uint64_t seed;    /* of its random numbers */
    const struct parameter *parameters;
    uint32_t parameter_count;
};

/* InfiniBand: the P_Keys of packets that may enter or leave a switch by a port (pkey.h). */
struct pkey_filter {
    bool inbound, outbound;
    uint8_t count;
    uint16_t keys[128];
};

/* InfiniBand: how long the first packet of a lane waits for credit (hoq.h). */
struct hoq_config {
    int64_t life_ps; /* 0: no limit */
    /* The lane is stalled after so many packets discarded in a row; 0: never. */
    uint8_t stall_count;
};

struct switch_port_config {
    struct port_config port;
    uint8_t far_mac[6];     /* the destination of packets that a router sends by the port */
    struct qos_map qos_map; /* of frames that arrive */
    uint8_t queue_of[16];   /* of frames that leave, by priority or VL */
    struct pfc_config pfc;
    const struct queue_discipline_config *disciplines;
    uint32_t discipline_count;
    struct pkey_filter pkeys;
    struct hoq_config hoq;
};

struct switch_config {
    uint32_t ports;
    uint8_t forwarding; /* enum forwarding */
    int64_t latency_ps; /* from the last bit (cut-through: the header) to the egress queue */
    bool cut_through;
    struct buffer_config buffer;
    struct arbiter_config arbiter;
    struct watchdog_config watchdog;
    struct load_balance_config load_balance;
    bool hints; /* external datapath: the transit tag has a hint, the egress port (transit.h) */
    /* InfiniBand: service levels, one bit each, whose packets choose among the ports of a route
     * after the first. All other packets take the first port. */
    uint16_t balanced_sls;
};

#endif
