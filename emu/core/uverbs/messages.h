/* What a program's verbs library and the process of the NICs say to each other when something is
 * made, changed or destroyed. Each request is one datagram on a local socket, and gets one reply.
 *
 *     library ── struct uverbs_request, open files ──▶ NICs
 *             ◀── struct uverbs_reply, open files ────
 *
 * Work requests and completions go another way: through shared memory (rings.h). Plain
 * declarations only, as in nic_api.h. Numbers are in the machine's byte order. */
#ifndef EMU_UVERBS_MESSAGES_H
#define EMU_UVERBS_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "uverbs/cm_messages.h"

enum { UVERBS_VERSION = 5, UVERBS_REASON_BYTES = 200, UVERBS_NONE = 0, UVERBS_PKEYS = 16 };

enum uverbs_command {
    UVERBS_OPEN, /* files: struct uverbs_session, the program's memory. Of the reply: writing end of
                  * a pipe that wakes the NICs, struct uverbs_time, reading end of async events */
    UVERBS_ALLOC_PD,
    UVERBS_REG_MR,
    UVERBS_REREG_MR,       /* what `mr.given` says */
    UVERBS_DETACH_MR,      /* `mr.addr` and `mr.length`: the region loses these pages */
    UVERBS_CREATE_CHANNEL, /* file of the reply: reading end of its events */
    UVERBS_CREATE_CQ,      /* file: struct uverbs_cq */
    UVERBS_RESIZE_CQ,      /* file: struct uverbs_cq, with the entries of the present one */
    UVERBS_CREATE_SRQ,     /* file: struct uverbs_queue */
    UVERBS_CREATE_QP, /* files: struct uverbs_queue of sends; of receives, unless there is an SRQ */
    UVERBS_MODIFY_QP,
    UVERBS_QUERY_QP,
    UVERBS_MODIFY_SRQ,
    UVERBS_QUERY_SRQ, /* `number` of the reply: the limit */
    UVERBS_DESTROY,   /* whatever has that handle */
    /* Of connections. `handle`: of the identifier, or where the command makes none, of the event
     * channel. */
    UVERBS_CM_CREATE_CHANNEL, /* file: writing end of a pipe, which gets a byte for each event */
    UVERBS_CM_DESTROY_CHANNEL,
    UVERBS_CM_GET_EVENT, /* of a channel; EAGAIN: there is none */
    UVERBS_CM_CREATE_ID,
    UVERBS_CM_DESTROY_ID,
    UVERBS_CM_MIGRATE_ID,
    UVERBS_CM_BIND_ADDR,
    UVERBS_CM_RESOLVE_ADDR,
    UVERBS_CM_RESOLVE_ROUTE,
    UVERBS_CM_LISTEN,
    UVERBS_CM_CONNECT,
    UVERBS_CM_ACCEPT,
    UVERBS_CM_REJECT,
    UVERBS_CM_ESTABLISH,
    UVERBS_CM_DISCONNECT,
    UVERBS_CM_QUERY_QP, /* the attributes that connect its queue pair */
    UVERBS_COMMANDS,
};

/* Bits of uverbs_qp_attr.given. */
enum uverbs_given {
    UVERBS_STATE = 1 << 0,
    UVERBS_DEST = 1 << 1, /* dest_qp_num */
    UVERBS_AV = 1 << 2,   /* dest_address, dest_gid, sl, traffic_class, path_bits */
    UVERBS_RQ_PSN = 1 << 3,
    UVERBS_SQ_PSN = 1 << 4,
    UVERBS_PATH_MTU = 1 << 5,
    UVERBS_TIMEOUT = 1 << 6,
    UVERBS_RETRY_CNT = 1 << 7,
    UVERBS_RNR_RETRY = 1 << 8,
    UVERBS_MIN_RNR_TIMER = 1 << 9,
    UVERBS_MAX_RD_ATOMIC = 1 << 10,
    UVERBS_MAX_DEST_RD_ATOMIC = 1 << 11,
    UVERBS_QKEY = 1 << 12,
    UVERBS_PKEY_INDEX = 1 << 13,
    UVERBS_CUR_STATE = 1 << 14,
    UVERBS_ACCESS_FLAGS = 1 << 15,
    UVERBS_EVENT_WHEN_DRAINED = 1 << 16, /* UVERBS_SQ_DRAINED, of a change to SQD */
};

struct uverbs_qp_attr {
    uint32_t given; /* bits of enum uverbs_given: which of these count */
    uint32_t state; /* enum qp_state */
    uint32_t cur_state;
    uint32_t dest_qp_num;
    uint32_t dest_address; /* IPv4 address, or LID */
    uint32_t rq_psn, sq_psn;
    uint32_t path_mtu; /* bytes */
    uint32_t qkey;
    uint32_t access; /* bits of enum access that other hosts may use */
    uint16_t pkey_index;
    uint8_t sl, traffic_class, path_bits;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
};

/* Bits of uverbs_reg_mr.given. */
enum uverbs_rereg { UVERBS_NEW_MEMORY = 1, UVERBS_NEW_PD = 2, UVERBS_NEW_ACCESS = 4 };

struct uverbs_reg_mr {
    uint32_t given;        /* of UVERBS_REREG_MR */
    uint64_t addr, length; /* in the program; its pages are in the file of UVERBS_OPEN */
    uint64_t iova;
    uint32_t pd, access; /* bits of enum access */
};

struct uverbs_create_cq {
    uint32_t cqe, channel;
};

struct uverbs_create_srq {
    uint32_t pd, max_wr;
};

struct uverbs_create_qp {
    uint32_t pd, transport; /* enum transport */
    uint32_t send_cq, recv_cq, srq;
    uint32_t max_send_wr, max_recv_wr, max_inline_data;
};

struct uverbs_modify_srq {
    uint32_t limit; /* an event when fewer receives are posted; 0: none */
};

/* `handle`: of the object that the command is about. */
struct uverbs_request {
    uint32_t command; /* enum uverbs_command */
    uint32_t handle;
    uint32_t version, pid; /* of UVERBS_OPEN */
    struct uverbs_reg_mr mr;
    struct uverbs_create_cq cq;
    struct uverbs_create_srq srq;
    struct uverbs_create_qp qp;
    struct uverbs_modify_srq limit;
    struct uverbs_qp_attr attr;
    struct uverbs_cm_request cm;
};

/* The device and its port, which do not change but for `is_active`. */
struct uverbs_device {
    uint64_t guid;
    uint8_t gid[16];
    char network_device[16];
    char firmware[64]; /* its version */
    bool is_ethernet;
    uint32_t address;   /* IPv4 address, or LID */
    uint16_t pkeys[16]; /* UVERBS_PKEYS */
    uint32_t pkey_count;
    uint32_t lmc;
    uint32_t vls; /* of its port; 0 on Ethernet */
    uint32_t mtu; /* bytes */
    uint64_t rate_bps;
    uint32_t width;     /* lanes */
    uint8_t default_sl; /* InfiniBand */
    uint32_t max_qp, max_mr, max_cqe, max_wr, max_inline_data, max_rd_atomic;
};

/* How emulated time follows from that of the machine. */
struct uverbs_clock {
    bool is_exact;   /* emulated time is struct uverbs_time; otherwise it follows from ... */
    int64_t from_ns; /* ... CLOCK_MONOTONIC at emulated time 0, and ... */
    double slowdown;
    int64_t realtime_ns, monotonic_ns; /* what clocks show at emulated time 0 */
};

/* Of UVERBS_OPEN. */
struct uverbs_opened {
    struct uverbs_device device;
    struct uverbs_clock clock;
};

struct uverbs_reply {
    int32_t error; /* errno, or 0 */
    uint32_t handle;
    uint32_t number; /* of a queue pair; the key of a memory region */
    uint32_t state;  /* enum qp_state, of a queue pair after the command */
    struct uverbs_qp_attr attr;
    struct uverbs_opened opened;
    struct uverbs_cm_reply cm;
    char reason[200]; /* UVERBS_REASON_BYTES; of an error, for people */
};

#endif
