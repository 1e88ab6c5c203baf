/* The verbs interface: how a program uses the NIC. Work requests go in by value, work completions
 * come out of completion queues.
 *
 *     post_send ─▶ slots ─▶ send queue    ─▶ completion queue ─▶ cq_poll
 *     post_recv ─▶ slots ─▶ receive queue ─▶ completion queue ─▶ cq_poll
 *
 * The slots are allocated with the queue pair, one for each work request that may be outstanding.
 *
 * There are two ways to post. `post` refuses a request that is not allowed, with the reason, and
 * changes nothing. `submit` does as hardware and its drivers do: it refuses only what a driver sees
 * without the NIC. What is wrong with other requests is found when their turn comes. Such a request
 * completes with an error after all before it, and its queue pair fails, or in the case of UC and
 * UD its send queue.
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
    bool solicited;   /* a receive whose sender asked for a solicited event */
    uint32_t byte_len;
    uint32_t imm_data; /* immediate data, or the invalidated key */
    uint32_t qp_num;
    uint32_t src_qp; /* the sender's queue pair */
    /* Of datagrams on InfiniBand. */
    uint16_t slid;
    uint8_t sl, dlid_path_bits;
};

/* A send work request, by the names of ibv_send_wr. */
struct send_request {
    uint64_t wr_id;
    int verb;        /* enum verb */
    bool unsignaled; /* success makes no completion */
    bool solicited;  /* the receiver gets a solicited event, if the message takes a receive */
    const struct sge *sges; /* read during the call only */
    uint32_t sge_count;     /* at most MAX_SGE; 0: an empty message */
    const uint8_t *inlined; /* inline data in place of the list, copied at once; or NULL */
    uint32_t inlined_bytes;
    bool copied; /* the inline data is a copy of memory, which takes the NIC as long to read */
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
enum refusal { REFUSED_QUEUE_FULL = -1, REFUSED_INLINE = -2, REFUSED_SGE_COUNT = -3 };

/* ---- set-up: NULL when memory is short ---- */

/* A queue for `capacity` completions. `event` becomes true when one can be polled. */
struct cq *cq_new(struct clock *clock, uint32_t capacity, bool *event);
/* False, and nothing has changed, when memory is short or more completions wait. */
bool cq_resize(struct cq *cq, uint32_t capacity);

/* A receive queue that several queue pairs of one protection domain share. */
struct verbs_srq *verbs_srq_new(struct nic *nic, uint32_t pd, uint32_t max_wr);
/* The value for qp_config.srq. */
struct srq *verbs_srq_queue(struct verbs_srq *srq);

/* Adds slots and completion queues to a queue pair of nic_add_qp. With a shared receive queue it
 * needs no receive slots. Each send slot has room for max_inline_data bytes. */
struct verbs_qp *verbs_qp_new(struct qp *qp, struct cq *send_cq, struct cq *recv_cq,
                              uint32_t max_send_wr, uint32_t max_recv_wr, uint32_t max_inline_data);

/* ---- the end ----
 *
 * In this order: nic_remove_qp for a queue pair, verbs_qp_free, and then cq_free and verbs_srq_free
 * for each queue that no queue pair uses any more. Without nic_remove_qp once the clock runs no
 * more; but the clock must still be there. */

/* Removes its completions that were not polled yet, too. */
void verbs_qp_free(struct verbs_qp *qp);
void cq_free(struct cq *cq);
void verbs_srq_free(struct verbs_srq *srq);

/* ---- between two runs of the clock ---- */

/* Notes events from now on, until the end. */
void verbs_watch(struct verbs_qp *qp, struct event_watch *watch);
void verbs_note_when_drained(struct verbs_qp *qp); /* as qp_note_when_drained */
void verbs_srq_watch(struct verbs_srq *srq, struct event_watch *watch);
/* From now on `dropped` gets the wr_id of each receive that a queue pair took and that has no
 * completion, as the queue pair was reset or removed. */
typedef void receive_dropped(uint64_t wr_id);
void verbs_srq_on_dropped(struct verbs_srq *srq, receive_dropped *dropped);
/* NIC_SRQ_LIMIT_REACHED happens once, as soon as fewer receives than `limit` are posted; 0: it does
 * not. */
void verbs_srq_arm(struct verbs_srq *srq, uint32_t limit);
/* The limit that is armed; 0 once that has happened. */
uint32_t verbs_srq_limit(const struct verbs_srq *srq);

/* A queue pair whose completions go to this queue fails, because the queue has lost some. False: it
 * has other queues, or has failed already. */
bool verbs_fail_user(struct verbs_qp *qp, const struct cq *cq);

/* Like qp_modify. RESET also removes the queue pair's completions that were not polled yet. */
bool verbs_modify(struct verbs_qp *qp, enum qp_state to, int64_t now_ps);

/* Returns 0 when the request was posted. Otherwise returns an enum status or enum refusal, and
 * nothing has changed. A failed queue pair accepts every request, and flushes it. */
int verbs_post_send(struct verbs_qp *qp, const struct send_request *request, int64_t now_ps);
int verbs_post_recv(struct verbs_qp *qp, uint64_t wr_id, const struct sge *sges, uint32_t sge_count,
                    int64_t now_ps);
int verbs_post_srq_recv(struct verbs_srq *srq, uint64_t wr_id, const struct sge *sges,
                        uint32_t sge_count, int64_t now_ps);

/* False, and nothing has changed, when the queue is full, the list or the inline data is too long,
 * a READ or atomic has inline data, the state of the queue pair takes no request (LOC_QP_OP_ERR of
 * `post`), or, for a receive, the queue pair has a shared receive queue. */
bool verbs_submit_send(struct verbs_qp *qp, const struct send_request *request, int64_t now_ps);
bool verbs_submit_recv(struct verbs_qp *qp, uint64_t wr_id, const struct sge *sges,
                       uint32_t sge_count, int64_t now_ps);
bool verbs_submit_srq_recv(struct verbs_srq *srq, uint64_t wr_id, const struct sge *sges,
                           uint32_t sge_count);

/* Takes the oldest completion; false when there is none. */
bool cq_poll(struct cq *cq, struct work_completion *completion);

/* Whether a completion was lost because the queue was full. */
bool cq_is_overrun(const struct cq *cq);

#endif
