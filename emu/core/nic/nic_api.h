/* The public interface of the RNIC: how a fabric and a workload are set up, and what can be read
 * during and after a run.
 *
 * Plain declarations only, so that a C parser without a preprocessor can read them once the lines
 * that begin with # are removed. Times are emulated picoseconds since the start of the run, rates
 * are bits per second.
 *
 * Everything here is called at set-up or between two runs of the clock. */
#ifndef EMU_NIC_NIC_API_H
#define EMU_NIC_NIC_API_H

#include <stdbool.h>
#include <stdint.h>

#include "link/port_config.h"

struct clock;
struct nic;
struct srq;
struct qp;
struct workload;

/* The number of a NIC's first queue pair; the others follow (qp_table.h). 0 and 1 are for
 * management: 0 for the subnet's, which no NIC here has, 1 for General Services (IBTA vol 1,
 * 13.4.6). */
enum { GSI_QPN = 1, FIRST_QPN = 0x11 };

/* The Q_Key of every queue pair 1. Management datagrams have 256 bytes (IBTA vol 1, 13.4.2). */
enum { GSI_QKEY = 0x80010000, MAD_BYTES = 256 };

/* This value of rnr_retry means no limit. */
enum { RNR_RETRY_FOR_EVER = 7 };

/* The transport services of IBTA. */
enum transport {
    TRANSPORT_RC, /* reliable connection: every message arrives once, in order */
    TRANSPORT_UC, /* unreliable connection: SEND and WRITE; a lost packet costs its message */
    TRANSPORT_UD, /* unreliable datagram: SEND of one packet, to any queue pair */
};

enum verb {
    VERB_SEND,
    VERB_SEND_IMM, /* with immediate data */
    VERB_SEND_INV, /* invalidates a key of the receiver */
    VERB_WRITE,
    VERB_WRITE_IMM, /* takes a receive, which gets the immediate data */
    VERB_READ,
    VERB_CMP_SWAP,
    VERB_FETCH_ADD,
    VERBS,
};

/* The permitted uses of a memory region. Local reads are always permitted. */
enum access {
    ACCESS_LOCAL_WRITE = 1,
    ACCESS_REMOTE_WRITE = 2,
    ACCESS_REMOTE_READ = 4,
    ACCESS_REMOTE_ATOMIC = 8,
};

/* The most elements in a scatter/gather list. */
enum { MAX_SGE = 16 };

/* A scatter/gather element, by the names of ibv_sge: a range of registered memory. */
struct sge {
    uint64_t addr;
    uint32_t length, lkey;
};

/* The result of a message or a receive, by the names of ibv_wc_status. */
enum status {
    STATUS_SUCCESS,
    STATUS_PENDING,           /* not completed yet */
    STATUS_LOC_LEN_ERR,       /* a message is too long for its verb or for its receive */
    STATUS_LOC_QP_OP_ERR,     /* the queue pair's transport or state does not allow the verb */
    STATUS_LOC_PROT_ERR,      /* local memory: no such region, or an address outside it */
    STATUS_WR_FLUSH_ERR,      /* the queue pair had failed before */
    STATUS_REM_INV_REQ_ERR,   /* NAK 0x61 */
    STATUS_REM_ACCESS_ERR,    /* NAK 0x62 */
    STATUS_REM_OP_ERR,        /* NAK 0x63 */
    STATUS_RETRY_EXC_ERR,     /* no progress after retry_count retries */
    STATUS_RNR_RETRY_EXC_ERR, /* no posted receive after rnr_retry retries */
    STATUS_CANCELLED,         /* the queue pair was reset; or the operation never started, since one
                               * that it depends on failed */
    STATUS_SKIPPED,           /* never started: its turn, or that of one before it, came too late */
};

/* The rules are in qp_state.c. */
enum qp_state { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_ERR, QP_STATES };

/* Affiliated asynchronous events of a queue pair or a shared receive queue (IBTA vol 1, 11.6.3).
 * No completion reports them. */
enum nic_event {
    NIC_QP_REQ_ERROR,     /* it refused a request that it did not understand, and failed */
    NIC_QP_ACCESS_ERROR,  /* it refused a request for its key, bounds or rights, and failed */
    NIC_COMM_EST,         /* its first packet came while it was in RTR */
    NIC_LAST_WQE_REACHED, /* it failed, and takes no more from its shared receive queue */
    NIC_SRQ_LIMIT_REACHED,
    NIC_SQ_DRAINED, /* in SQD: all sends that were begun are over */
};

/* Where events are noted. */
struct event_watch {
    uint32_t events; /* bits of 1 << enum nic_event */
    bool *any;       /* becomes true with each */
    bool *stop;      /* likewise */
};

/* Congestion control of a queue pair; see cc.h. Only `table` must outlive the call. */
struct cc_config {
    const char *algorithm;              /* one of cc_name() */
    const struct parameter *parameters; /* real: times in picoseconds, rates in bits per second,
                                         * shares of 1. Those left out are 0. */
    uint32_t parameter_count;
    const uint16_t *table; /* for algorithms with a table; must outlive the queue pair */
    uint32_t table_entries;
};

/* The names of the congestion controls, and of the parameters of each; NULL after the last. */
const char *cc_name(uint32_t index);
const char *cc_parameter(uint32_t index, uint32_t place);

/* The names of the loss recoveries; NULL after the last. */
const char *recovery_name(uint32_t index);

/* How a receiver notifies senders of marked packets. */
enum becn { BECN_NONE, BECN_IN_CNP, BECN_IN_ACK };

enum cnp_per { CNP_PER_QP, CNP_PER_ADDRESS, CNP_PER_PORT };

/* How marked packets cause CNPs or ACKs with BECN; see notification_point.h. */
struct cnp_config {
    int becn;         /* enum becn; BECN_NONE: marked packets are only counted */
    bool keeps_marks; /* marks in an interval cause a CNP at its end */
    int per;          /* enum cnp_per: which queue pairs share an interval */
    int64_t interval_ps;
    int64_t delay_ps; /* from the arrival of the packet to the CNP */
};

/* The path between a NIC and the memory of its messages; see host_path.h. All 0: no delay. */
struct host_path {
    uint64_t rate_bps;       /* in each direction; 0: not limited */
    uint32_t buffer_bytes;   /* for packets that wait for memory; used with a rate */
    int64_t doorbell_ps;     /* from the program's post to the NIC */
    int64_t read_ps;         /* from a read request to memory until its first byte */
    int64_t write_ps;        /* from the last byte in the NIC to memory */
    int64_t completion_ps;   /* from the NIC to the program */
    uint64_t copy_rate_bps;  /* rate of the copy engine; 0: no copy engine */
    int64_t copy_latency_ps; /* of the copy engine, before each copy */
    uint32_t copy_piece_bytes;
};

struct nic_config {
    struct port_config port;
    uint32_t address;       /* IPv4 address, or LID */
    uint8_t gateway_mac[6]; /* Ethernet: the destination of every frame */
    bool tagged;            /* Ethernet: sent frames have a VLAN tag, */
    uint16_t vid;           /* with this VID, 0-4094, and its priority as PCP */
    struct qos_map qos_map; /* Ethernet: of arriving frames; `of_dscp` also of sent ones */
    uint64_t guid;          /* InfiniBand: of the port */
    bool global_route;      /* InfiniBand: sent packets have a GRH */
    uint8_t lmc;            /* InfiniBand: the port has 2^lmc LIDs, from `address` on */
    /* Payloads have a length and no bytes: frames hold headers only, no CRC is written or checked,
     * and memory is neither read nor written. */
    bool elides_payload;
    uint32_t max_qps, max_regions;
    struct host_path path;
};

struct qp_config {
    int transport;        /* enum transport */
    uint32_t denied;      /* bits of enum access: what other hosts may not do by this queue pair,
                           * whatever regions allow */
    uint32_t pd;          /* protection domain */
    uint32_t psn;         /* of the first packet sent, 24 bits */
    uint32_t mtu;         /* path MTU: 256, 512, 1024, 2048 or 4096 bytes of payload */
    uint8_t dscp;         /* Ethernet: of data */
    uint8_t ack_dscp;     /* Ethernet: of acknowledgements */
    uint8_t cnp_dscp;     /* Ethernet: of CNPs */
    bool cnp_prioritised; /* Ethernet: CNPs have `cnp_priority`, not that of their DSCP */
    uint8_t cnp_priority;
    bool not_ect;          /* Ethernet: data is not ECN-capable */
    uint8_t sl;            /* InfiniBand */
    uint8_t path_bits;     /* InfiniBand: which LID of the other end is the destination */
    uint32_t ack_every;    /* packets; requests an ACK that often, and at the end of a message */
    uint32_t window;       /* packets in flight; 0: as many as PSNs allow */
    uint8_t timeout;       /* 4.096 us * 2^timeout; 0: never */
    uint8_t retry_count;   /* 0-7 */
    uint8_t rnr_retry;     /* 0-7; 7: no limit */
    uint8_t min_rnr_timer; /* code of the waiting time in RNR NAKs sent */
    /* READs and atomics that may be outstanding: sent from here, and from the other end. */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    bool credits;    /* end-to-end: ACKs carry the number of posted receives, which limits SENDs */
    uint16_t pkey;   /* 0: the default partition's, 0xFFFF */
    uint32_t qkey;   /* datagrams must carry it to be received */
    struct srq *srq; /* shared receive queue; NULL: a receive queue of its own */
    uint32_t reordering;  /* selective repeat: how far ahead of a missing packet others may arrive
                           * before it counts as lost */
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

/* Registers `length` bytes at `bytes` under the addresses from `va` on, for the queue pairs of
 * protection domain `pd` (any number; 0 if there is only one). The caller owns the bytes, which
 * must outlive the region or the NIC. A NIC that elides payloads needs none (NULL). Returns the
 * region's key, for local and remote use; 0 when max_regions are registered, or bytes are missing.
 */
uint32_t nic_add_region(struct nic *nic, uint32_t pd, uint64_t va, uint64_t length, uint32_t access,
                        uint8_t *bytes);

/* Invalidates a key. False when the key does not exist, or no longer exists. In both cases the NIC
 * never again touches the region's bytes. A message that still needs them fails when its turn comes
 * to be sent, or answered: with LOC_PROT_ERR at their own side, with REM_ACCESS_ERR at the other,
 * and with REM_OP_ERR if they are a receive's. */
bool nic_invalidate(struct nic *nic, uint32_t pd, uint32_t key);

/* The messages that have changed memory here on behalf of other hosts, to their ends: WRITEs and
 * atomics. */
uint64_t nic_writes(const struct nic *nic);
/* `*written` becomes true with each of them, for programs that wait for a change of their memory;
 * NULL: it does not. */
void nic_watch_writes(struct nic *nic, bool *written);

bool nic_link_is_up(const struct nic *nic);
/* `*changed` becomes true when the link goes down or comes back. */
void nic_watch_link(struct nic *nic, bool *changed);

/* NULL when the NIC has max_qps queue pairs, memory is short, or the config is invalid. */
struct qp *nic_add_qp(struct nic *nic, const struct qp_config *config);

/* The General Services Interface: a queue pair for datagrams, which has number 1 and the Q_Key of
 * all such, whatever `config` says of these. NULL when the NIC has one, memory is short, or the
 * config is invalid. It lives as long as the NIC. */
struct qp *nic_add_gsi(struct nic *nic, const struct qp_config *config);

/* Whether it has acknowledgements or data to send for packets that it has received. */
bool qp_owes_response(const struct qp *qp);

/* Cancels all that is posted to the queue pair, and ends it; its pointer is invalid from then on.
 * Packets that are still on their way to it are treated like those to a queue pair that never was.
 * Not for queue pairs of a workload, of IP over InfiniBand or of General Services. */
void nic_remove_qp(struct nic *nic, struct qp *qp, int64_t now_ps);

uint32_t qp_number(const struct qp *qp);

enum qp_state qp_state(const struct qp *qp);

/* Whether the queue pair may change to that state. If not, qp_modify returns false and changes
 * nothing. A change to ERR flushes all posted requests, a change to RESET cancels them. */
bool qp_may_modify(const struct qp *qp, enum qp_state to);
bool qp_modify(struct qp *qp, enum qp_state to, int64_t now_ps);

/* In SQD: notes NIC_SQ_DRAINED once, now or when the last send that was begun is over. */
void qp_note_when_drained(struct qp *qp);

/* Takes PSN, MTU, service level, DSCP, P_Key, Q_Key, denied access, timers, retries and outstanding
 * READs from `config`. Once the queue pair may send, only Q_Key, denied access and min_rnr_timer
 * may change; in SQD also timeout, retries
 * and outstanding READs. Returns false and changes nothing when another attribute differs, a value
 * is invalid, or max_dest_rd_atomic is larger than at the creation of the queue pair. */
bool qp_set_attributes(struct qp *qp, const struct qp_config *config);

/* Sets the other end, before RTR. A queue pair for datagrams has no other end; any address will
 * do, its own for example. The NIC's port must have its cable already. */
void qp_set_remote(struct qp *qp, const struct qp_remote *remote);

/* Takes the queue pair from RESET to RTS. The NIC's port must have its cable already. */
void qp_connect(struct qp *qp, const struct qp_remote *remote);

/* Connects two queue pairs of one process with each other. A delivery at one is then recorded with
 * the message of the other. Messages of an unreliable transport must not be reused after their
 * completion, because they are delivered later. */
void qp_connect_pair(struct qp *one, struct qp *other);

/* Connects a queue pair with one at a NIC that another process runs, whose number, address and PSN
 * `far` has. Returns what stands in for it here as the sender of operations to `own`; NULL: no
 * memory. `config`: its own; only transport and qkey are used. */
struct qp *qp_connect_far(struct qp *own, const struct qp_config *config,
                          const struct qp_remote *far);

/* The rate that congestion control allows now; the line rate if it sets no limit. */
uint64_t qp_rate_bps(const struct qp *qp);

/* Progress of a queue pair whose other end is in the same process. Packets count from 0. */
struct qp_view {
    bool failed;
    uint64_t posted;       /* packets of all messages */
    uint64_t sent;         /* sent at least once */
    uint64_t next;         /* the packet to send next */
    uint64_t acknowledged; /* need not be sent again */
    uint64_t received;     /* accepted by the other end: in order; datagrams in any order */
    uint32_t window;       /* packets in flight that congestion control allows; 0: no limit */
};
struct qp_view qp_look(const struct qp *qp);

/* ---- a workload --------------------------------------------------------- */

/* One message, or a piece of a host's own work, and the operations that depend on it. */
struct operation {
    uint32_t host; /* number of the host that posts the message, or works */
    uint32_t far;  /* number of the host at the other end; for work the same host */
    struct qp *qp; /* the sender's; connected by qp_connect_pair, also for datagrams, or by
                    * qp_connect_far. NULL: work, nothing is sent; or other processes run both
                    * hosts */
    int verb;      /* enum verb */
    uint32_t flow; /* the flow that its bytes are counted for */
    uint64_t local_va;
    uint32_t lkey;
    uint64_t remote_va; /* SEND, or immediate data: the receive that is posted for it */
    uint32_t rkey;
    uint32_t length;    /* bytes, at most 2^31; atomics: 8 */
    uint32_t immediate; /* or the key to invalidate */
    uint64_t compare, swap_add;
    /* On delivery its float32 values are added to the receiver's at this address. Key 0: they are
     * not. */
    uint64_t sum_va;
    uint32_t sum_key;
    uint32_t device; /* work that needs a device alone: which one */
    int64_t not_before_ps;
    int64_t not_after_ps; /* the operation is skipped if its turn comes later; 0: never */
    int64_t duration_ps;  /* of work, after its time on the device */
    int64_t busy_ps;      /* of work: how long it occupies `device` alone */
    uint32_t first_dependent, dependent_count; /* in the array of dependents */
};

/* The times and the result of a message. Times are INT64_MAX until they are known. */
struct message_record {
    int64_t started_ps;    /* posted to its queue pair */
    int64_t first_sent_ps; /* the first byte of its first packet left */
    int64_t delivered_ps;  /* its last byte was in the memory it goes to */
    int64_t completed_ps;  /* acknowledged, or failed */
    uint64_t delivered_bytes;
    uint32_t retransmitted_packets;
    int32_t status; /* enum status */
};

struct workload_config {
    const struct operation *operations;
    uint32_t count;
    const uint32_t *dependents; /* indices of operations */
    uint32_t dependent_count;
    uint32_t flow_count, device_count;
    struct clock *const *clocks; /* of the hosts, by number; used in the call only */
    /* Where several processes run the hosts: which hosts this one runs, by number, used in the call
     * only; and which operations have one of them as sender or receiver. The others are zero and
     * nobody's dependents, and no memory is used for them. NULL: all. */
    const bool *own_hosts, *is_here;
    uint32_t host_count;
    int64_t delivery_limit_ps; /* unreliable messages that have not arrived this long after the last
                                * event are lost */
};

/* `operations` and `dependents` must outlive the workload. NULL when memory is short, or an
 * operation is invalid: its indices, verb, length, local memory, the receive of a SEND, or the
 * values of a sum. */
struct workload *workload_new(const struct workload_config *config);
void workload_free(struct workload *workload);

/* Starts every operation that depends on no other, at its time. Call once. */
void workload_start(struct workload *workload);

/* Whether the workload has ended: all operations are over, and unreliable messages have arrived or
 * are lost. Enters into the records which operations will never start. */
bool workload_is_finished(struct workload *workload, int64_t now_ps);
/* What decides whether a workload has ended: operations that are not over, unreliable messages that
 * have left and not arrived, and when either number last changed. Of several processes' counts
 * the sums count, and the latest change. */
struct workload_counts {
    int64_t remaining, undelivered, last_change_ps;
};
struct workload_counts workload_counts(const struct workload *workload);
bool workload_counts_say_over(const struct workload *workload, struct workload_counts counts,
                              int64_t now_ps);

/* Where several processes run the hosts (own_hosts), each calls these in place of
 * workload_is_finished: it takes the failures of its own operations, until it gets none, and lets
 * all processes hear them, itself too, until no process has any left. Operations have the same
 * numbers in all of them, and hosts on one clock are in one process. */
struct workload_failure {
    int64_t completed_ps;
    uint32_t operation;
    int32_t status;
};
/* Returns how many of `room` there are. */
uint32_t workload_take_failures(struct workload *workload, struct workload_failure *failures,
                                uint32_t room);
/* Stops the own operations that wait for it. */
void workload_hear_failure(struct workload *workload, const struct workload_failure *failure);

/* The number of operations that are not over, as far as workload_is_finished knew. */
uint32_t workload_remaining(const struct workload *workload);

/* One record for each operation, and one count of delivered bytes for each flow. */
const struct message_record *workload_records(const struct workload *workload);
const uint64_t *workload_delivered(const struct workload *workload);

#endif
