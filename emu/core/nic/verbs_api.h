/* The verbs interface: how a program uses the NIC. Work requests go in by value, work completions
 * come out of completion queues.
 *
 *     post_send ─▶ slots ─▶ send queue    ─▶ completion queue ─▶ cq_poll
 *     post_recv ─▶ slots ─▶ receive queue ─▶ completion queue ─▶ cq_poll
 *
 * The slots are allocated with the queue pair, one for each work request that may be outstanding.
 * A request that is not allowed is refused with the reason, and changes nothing.
 *
 * Plain declarations only, as in nic_api.h. Everything here is called between two runs of the
 * clock. */
#ifndef EMU_NIC_VERBS_API_H
#define EMU_NIC_VERBS_API_H

#include "nic/nic_api.h"

struct cq;
struct verbs_srq;
struct verbs_qp;

enum wc_flag { WC_WITH_IMM = 1, WC_WITH_INV = 2, WC_GRH = 4 };

/* A work completion, by the names of ibv_wc. */
struct work_completion {
    uint64_t wr_id;
    int64_t at_ps;  /* the earliest time at which the program can see it */
    int32_t status; /* enum status */
    int32_t
        verb; /* enum verb; for a receive the message that took it: VERB_SEND or VERB_WRITE_IMM */
    bool is_receive;  /* otherwise a send request */
    uint8_t wc_flags; /* bits of enum wc_flag */
    uint32_t byte_len;
    uint32_t imm_data; /* immediate data, or the invalidated key */
    uint32_t qp_num;
    uint32_t src_qp; /* the sender's queue pair */
};

/* A send work request, by the names of ibv_send_wr, with a single scatter/gather element. */
struct send_request {
    uint64_t wr_id;
    int verb;        /* enum verb */
    bool unsignaled; /* success makes no completion */
    uint64_t addr;
    uint32_t length, lkey;
    const uint8_t *inlined; /* inline data of `length` bytes, copied at once; or NULL */
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t imm_data; /* immediate data, or the key to invalidate */
    uint64_t compare_add, swap;
    /* The destination of a datagram. */
    bool is_datagram;
    uint32_t remote_address; /* IPv4 address, or LID */
    uint32_t remote_qpn, remote_qkey;
    uint8_t sl; /* InfiniBand */
};

/* Why a work request was refused, apart from the reasons in enum status. */
enum refusal { REFUSED_QUEUE_FULL = -1, REFUSED_INLINE = -2 };

/* ---- set-up: NULL when memory is short ---- */

/* A queue for `capacity` completions. `event` becomes true when one can be polled. */
struct cq *cq_new(struct clock *clock, uint32_t capacity, bool *event);
void cq_free(struct cq *cq);

/* A receive queue that several queue pairs of one protection domain share. */
struct verbs_srq *verbs_srq_new(struct nic *nic, uint32_t pd, uint32_t max_wr);
void verbs_srq_free(struct verbs_srq *srq);
/* The value for qp_config.srq. */
struct srq *verbs_srq_queue(struct verbs_srq *srq);

/* Adds slots and completion queues to a queue pair of nic_add_qp. With a shared receive queue it
 * needs no receive slots. Each send slot has room for max_inline_data bytes. */
struct verbs_qp *verbs_qp_new(struct qp *qp, struct cq *send_cq, struct cq *recv_cq,
                              uint32_t max_send_wr, uint32_t max_recv_wr, uint32_t max_inline_data);
/* Completion queues, shared receive queues and queue pairs are freed after the NIC, which still
 * refers to them. */
void verbs_qp_free(struct verbs_qp *qp);

/* ---- between two runs of the clock ---- */

/* Like qp_modify. RESET also removes the queue pair's completions that were not polled yet. */
bool verbs_modify(struct verbs_qp *qp, enum qp_state to, int64_t now_ps);

/* Returns 0 when the request was posted. Otherwise returns an enum status or enum refusal, and
 * nothing has changed. A failed queue pair accepts every request, and flushes it. */
int verbs_post_send(struct verbs_qp *qp, const struct send_request *request, int64_t now_ps);
int verbs_post_recv(struct verbs_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t length,
                    uint32_t lkey, int64_t now_ps);
int verbs_post_srq_recv(struct verbs_srq *srq, uint64_t wr_id, uint64_t addr, uint32_t length,
                        uint32_t lkey, int64_t now_ps);

/* Takes the oldest completion; false when there is none. */
bool cq_poll(struct cq *cq, struct work_completion *completion);

/* Whether a completion was lost because the queue was full. */
bool cq_is_overrun(const struct cq *cq);

#endif
