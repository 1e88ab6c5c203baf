/* The public face of the RNIC: what a fabric and a workload are set up with,
 * and what can be read while and after they run.
 *
 * Plain declarations only, so that a C parser without a preprocessor can read
 * them once the lines that begin with # are gone. Times are emulated
 * picoseconds since the run began, rates bits per second.
 *
 * Everything here is called at set-up or between two runs of the clock. */
#ifndef EMU_NIC_NIC_API_H
#define EMU_NIC_NIC_API_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct nic;
struct srq;
struct qp;
struct workload;

/* A NIC numbers its queue pairs from here on. 0 and 1 are for management. */
enum { FIRST_QPN = 0x11 };

/* As rnr_retry: no limit. */
enum { RNR_RETRY_FOR_EVER = 7 };

/* IBTA's transport services: what a queue pair promises. */
enum transport {
    TRANSPORT_RC, /* reliable connection: everything, once, in order */
    TRANSPORT_UC, /* unreliable connection: SEND and WRITE; a lost packet costs its message */
    TRANSPORT_UD, /* unreliable datagram: SEND of one packet, to any queue pair */
};

enum verb {
    VERB_SEND,
    VERB_SEND_IMM, /* with immediate data */
    VERB_SEND_INV, /* and invalidates a key of the receiver */
    VERB_WRITE,
    VERB_WRITE_IMM, /* and takes a receive, which gets the immediate data */
    VERB_READ,
    VERB_CMP_SWAP,
    VERB_FETCH_ADD,
    VERBS,
};

/* What a memory region may be used for; reading it locally is always allowed. */
enum access {
    ACCESS_LOCAL_WRITE = 1,
    ACCESS_REMOTE_WRITE = 2,
    ACCESS_REMOTE_READ = 4,
    ACCESS_REMOTE_ATOMIC = 8,
};

/* How a message or a receive ended: ibv_wc_status, by its names. */
enum status {
    STATUS_SUCCESS,
    STATUS_PENDING,           /* not yet */
    STATUS_LOC_LEN_ERR,       /* too long: the message for the verb, what came for the receive */
    STATUS_LOC_QP_OP_ERR,     /* the queue pair's transport or state does not allow it */
    STATUS_LOC_PROT_ERR,      /* its own memory: no such region, or outside of it */
    STATUS_WR_FLUSH_ERR,      /* its queue pair failed before */
    STATUS_REM_INV_REQ_ERR,   /* NAK 0x61 */
    STATUS_REM_ACCESS_ERR,    /* NAK 0x62 */
    STATUS_REM_OP_ERR,        /* NAK 0x63 */
    STATUS_RETRY_EXC_ERR,     /* no answer, retry_count times */
    STATUS_RNR_RETRY_EXC_ERR, /* no receive posted, rnr_retry times */
    STATUS_CANCELLED,         /* its queue pair was reset; or it was never started, for an operation
                               * that it comes after failed */
    STATUS_SKIPPED,           /* never started: its turn came too late, or that of one before it */
};

/* qp_state.c has the rules. */
enum qp_state { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_ERR, QP_STATES };

/* A number of a congestion control, by name: times in picoseconds, rates in bits per second,
 * shares of 1. */
struct cc_value {
    const char *name;
    double value;
};

/* Congestion control of a queue pair; see cc.h. All that is pointed at but the table is read
 * during the call only. */
struct cc_config {
    const char *algorithm;             /* one of cc_name() */
    const struct cc_value *parameters; /* all that the algorithm has */
    uint32_t parameter_count;
    const uint16_t *table; /* of an algorithm that has one; must outlive the queue pair */
    uint32_t table_entries;
};

/* The congestion controls there are, and the parameters of each; NULL after the last. */
const char *cc_name(uint32_t index);
const char *cc_parameter(uint32_t index, uint32_t place);

/* The loss recoveries there are; NULL after the last. */
const char *recovery_name(uint32_t index);

/* How a receiver answers packets that met congestion. */
enum becn { BECN_NONE, BECN_IN_CNP, BECN_IN_ACK };

enum cnp_per { CNP_PER_QP, CNP_PER_ADDRESS, CNP_PER_PORT };

/* When packets that met congestion make CNPs, or whether ACKs tell; see notification_point.h. */
struct cnp_config {
    int becn;         /* enum becn; none: they are only counted */
    bool keeps_marks; /* of an interval, for a CNP when it is over */
    int per;          /* enum cnp_per: who shares an interval */
    int64_t interval_ps;
    int64_t delay_ps; /* from the packet's arrival to the CNP */
};

/* Between a NIC and the memory of its messages; see host_path.h. All 0: no time at all. */
struct host_path {
    uint64_t rate_bps;       /* either way; 0: as fast as data comes and goes */
    uint32_t buffer_bytes;   /* for what came and is not in memory; with a rate */
    int64_t doorbell_ps;     /* from a program's post to the NIC */
    int64_t read_ps;         /* from asking memory to its first byte */
    int64_t write_ps;        /* from the last byte in the NIC to memory */
    int64_t completion_ps;   /* from the NIC to the program */
    uint64_t copy_rate_bps;  /* of the copy engine; 0: there is none */
    int64_t copy_latency_ps; /* before it begins */
    uint32_t copy_piece_bytes;
};

struct nic_config {
    int framing;      /* enum framing of its port */
    uint32_t address; /* IPv4 address, or LID */
    uint8_t mac[6];   /* Ethernet: its own, and where it sends everything */
    uint8_t gateway_mac[6];
    bool tagged;                  /* Ethernet: what it sends has a VLAN tag, */
    uint16_t vid;                 /* with this VID, 0-4094, and its priority as PCP */
    uint8_t priority_of_dscp[64]; /* Ethernet: of what it sends */
    /* Ethernet: of what arrives; by DSCP unless it trusts PCP, and then `untagged` without a tag */
    bool trusts_pcp;
    uint8_t priority_of_pcp[8], untagged;
    uint8_t vl_of_sl[16]; /* InfiniBand */
    uint64_t guid;        /* InfiniBand: its port's */
    bool global_route;    /* InfiniBand: what it sends has a GRH */
    uint8_t lmc;          /* InfiniBand: 2^lmc LIDs are its own, from `address` on */
    /* Payloads exist by their length only: frames hold their headers, no CRC is
     * written or read, and no byte of memory is. */
    bool elides_payload;
    uint32_t max_qps, max_regions;
    struct host_path path;
};

struct qp_config {
    int transport;        /* enum transport */
    uint32_t pd;          /* its protection domain */
    uint32_t psn;         /* of the first packet it sends, 24 bits */
    uint32_t mtu;         /* path MTU: 256, 512, 1024, 2048 or 4096 bytes of payload */
    uint8_t dscp;         /* Ethernet: of what it asks for */
    uint8_t ack_dscp;     /* Ethernet: of its acknowledgements */
    uint8_t cnp_dscp;     /* Ethernet: of its CNPs */
    bool cnp_prioritised; /* Ethernet: its CNPs ride on `cnp_priority`, not on that of their DSCP */
    uint8_t cnp_priority;
    bool not_ect;          /* Ethernet: its packets do not understand ECN */
    uint8_t sl;            /* InfiniBand */
    uint8_t path_bits;     /* InfiniBand: which of the other end's LIDs it is sent to */
    uint32_t ack_every;    /* packets; asks for an ACK that often, and at the end of a message */
    uint32_t window;       /* packets in flight; 0: as many as PSNs allow */
    uint8_t timeout;       /* 4.096 us * 2^timeout; 0: never */
    uint8_t retry_count;   /* 0-7 */
    uint8_t rnr_retry;     /* 0-7; 7: for ever */
    uint8_t min_rnr_timer; /* code of the wait our RNR NAKs ask for */
    /* READs and atomics that may be outstanding: of ours, and of the other end's. */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    bool credits;         /* ACKs tell how many receives are posted, and SENDs heed it */
    uint16_t pkey;        /* 0: the default partition's, 0xFFFF */
    uint32_t qkey;        /* datagrams must carry it */
    struct srq *srq;      /* where its receives come from; NULL: they are its own */
    uint32_t reordering;  /* selective repeat: packets that may come before a missing one */
    const char *recovery; /* one of recovery_name(); read during the call only */
    struct cc_config cc;
    struct cnp_config cnp;
};

/* The other end of a queue pair. */
struct qp_remote {
    uint32_t qpn;
    uint32_t psn;     /* of the first packet it sends */
    uint32_t address; /* IPv4 address, or LID */
    uint64_t guid;    /* InfiniBand: of its port */
};

/* ---- a NIC -------------------------------------------------------------- */

/* Registers `length` bytes at `bytes` under the addresses from `va` on, for queue
 * pairs of that protection domain (any number, 0 unless there are several). The bytes stay the
 * caller's and must outlive the NIC; a NIC that elides payloads needs none (NULL). Returns the
 * region's key, for local and remote use; 0 when max_regions are registered, or bytes are missing.
 */
uint32_t nic_add_region(struct nic *nic, uint32_t pd, uint64_t va, uint64_t length, uint32_t access,
                        uint8_t *bytes);

/* Ends a key's use. False when there is no such key, or no more. */
bool nic_invalidate(struct nic *nic, uint32_t pd, uint32_t key);

/* NULL when max_qps are there, memory is short, or the config is wrong. */
struct qp *nic_add_qp(struct nic *nic, const struct qp_config *config);

uint32_t qp_number(const struct qp *qp);

enum qp_state qp_state(const struct qp *qp);

/* Whether the states allow that step; qp_modify without one returns false, and changes nothing.
 * What is posted is flushed in ERR, and cancelled in RESET. */
bool qp_may_modify(const struct qp *qp, enum qp_state to);
bool qp_modify(struct qp *qp, enum qp_state to, int64_t now_ps);

/* Takes PSN, MTU, service level, Q_Key, timers, retries and outstanding READs from
 * `config`; once the queue pair sends Q_Key and min_rnr_timer alone may change, and in SQD
 * timeout, retries and outstanding READs as well. False, and nothing changed, when another would,
 * one is wrong, or max_dest_rd_atomic is more than the queue pair was made with. */
bool qp_set_attributes(struct qp *qp, const struct qp_config *config);

/* Says where the other end is, before RTR. A place for datagrams has none: its own
 * address will do. The NIC's port must have its cable by then. */
void qp_set_remote(struct qp *qp, const struct qp_remote *remote);

/* From RESET to ready to send. The NIC's port must have its cable by then. */
void qp_connect(struct qp *qp, const struct qp_remote *remote);

/* Connects two queue pairs of one process with each other: deliveries of each
 * are then recorded with the messages of the other. Those of an unreliable transport
 * must not be reused once they are over. */
void qp_connect_pair(struct qp *one, struct qp *other);

/* The rate that congestion control allows it now; the line's when it does not limit the rate. */
uint64_t qp_rate_bps(const struct qp *qp);

/* A queue pair whose far end is in this process too, as it stands. Its packets count from 0. */
struct qp_view {
    bool failed;
    uint64_t posted;       /* packets of all its messages */
    uint64_t sent;         /* have left at least once */
    uint64_t next;         /* the packet to send next */
    uint64_t acknowledged; /* need not be sent again */
    uint64_t received;     /* the far end has taken: in order; datagrams as they come */
    uint32_t window;       /* packets in flight that congestion control allows; 0: any number */
};
struct qp_view qp_look(const struct qp *qp);

/* ---- a workload --------------------------------------------------------- */

/* One message, or work of a host, and what waits for it. */
struct operation {
    uint32_t host; /* a number of the host that posts it, or works */
    uint32_t far;  /* of the one at the other end; of work the same */
    struct qp *qp; /* the sender's; connected as one of a pair, for datagrams too. NULL: work,
                    * nothing is sent */
    int verb;      /* enum verb */
    uint32_t flow; /* whose bytes are counted */
    uint64_t local_va;
    uint32_t lkey;
    uint64_t remote_va; /* SEND, or immediate data: the receive that is posted for it */
    uint32_t rkey;
    uint32_t length;    /* bytes, at most 2^31; atomics: 8 */
    uint32_t immediate; /* or the key to invalidate */
    uint64_t compare, swap_add;
    /* Once delivered, its float32s are added to those that the receiver has here. Key 0: not. */
    uint64_t sum_va;
    uint32_t sum_key;
    uint32_t device; /* of work that has it for itself, one after another */
    int64_t not_before_ps;
    int64_t not_after_ps;                      /* skipped if its turn comes later; 0: never */
    int64_t duration_ps;                       /* of work, and before it: */
    int64_t busy_ps;                           /* how long it has `device` for itself */
    uint32_t first_dependent, dependent_count; /* in the table of dependents */
};

/* What became of a message. Times are INT64_MAX until they are known. */
struct message_record {
    int64_t started_ps;    /* posted to its queue pair */
    int64_t first_sent_ps; /* its first packet's first byte left */
    int64_t delivered_ps;  /* its last byte was in the receiver's memory; READ: in our own */
    int64_t completed_ps;  /* acknowledged, or failed */
    uint64_t delivered_bytes;
    uint32_t retransmitted_packets;
    int32_t status; /* enum status */
};

/* `operations` and `dependents`, which are indices of operations, must outlive the workload. NULL
 * when an operation is wrong (its indices, verb, length, its own memory, a SEND's receive, what it
 * adds to) or memory is short. */
struct workload *workload_new(struct clock *clock, const struct operation *operations,
                              uint32_t count, const uint32_t *dependents, uint32_t dependent_count,
                              uint32_t flow_count, uint32_t device_count);
void workload_free(struct workload *workload);

/* Starts every operation that waits for nothing but its time. Call once. */
void workload_start(struct workload *workload);

/* Operations that are not over yet, and whether there are none: a flag that may be watched. */
uint32_t workload_remaining(const struct workload *workload);
const bool *workload_finished(const struct workload *workload);

/* One record an operation; bytes delivered so far, one count a flow. */
const struct message_record *workload_records(const struct workload *workload);
const uint64_t *workload_delivered(const struct workload *workload);

#endif
