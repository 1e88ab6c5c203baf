/* Verbs: the NIC as a program uses it. Work requests go in by value, work
 * completions come out of completion queues.
 *
 *     post_send ─▶ slots ─▶ send queue    ─▶ completion queue ─▶ cq_poll
 *     post_recv ─▶ slots ─▶ receive queue ─▶ completion queue ─▶ cq_poll
 *
 * The slots are made with the queue pair, as many as it may have outstanding.
 * What may not be posted is refused with the reason, and changes nothing.
 *
 * Plain declarations only, as in nic_api.h. Everything here is called between two
 * runs of the clock. */
#ifndef EMU_NIC_VERBS_API_H
#define EMU_NIC_VERBS_API_H

#include "nic/nic_api.h"

struct cq;
struct verbs_srq;
struct verbs_qp;

enum wc_flag { WC_WITH_IMM = 1, WC_WITH_INV = 2, WC_GRH = 4 };

/* What is over: ibv_wc, by its names. */
struct work_completion {
    uint64_t wr_id;
    int64_t at_ps;    /* when the program could see it */
    int32_t status;   /* enum status */
    int32_t verb;     /* enum verb; VERB_SEND and VERB_WRITE_IMM of a receive: what took it */
    bool is_receive;  /* or else the end of what was sent */
    uint8_t wc_flags; /* bits of enum wc_flag */
    uint32_t byte_len;
    uint32_t imm_data; /* or the key that was invalidated */
    uint32_t qp_num;
    uint32_t src_qp; /* datagrams */
};

/* A message to send: ibv_send_wr, by its names, with one element to gather. */
struct send_request {
    uint64_t wr_id;
    int verb;        /* enum verb */
    bool unsignaled; /* it completes in silence, unless it fails */
    uint64_t addr;
    uint32_t length, lkey;
    const uint8_t *inlined; /* the bytes instead, of that length, copied at once; or NULL */
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t imm_data; /* or the key to invalidate */
    uint64_t compare_add, swap;
    /* Datagrams: where to. */
    bool is_datagram;
    uint32_t remote_address; /* IPv4 address, or LID */
    uint32_t remote_qpn, remote_qkey;
    uint8_t sl; /* InfiniBand */
};

/* Why a work request was not taken; or a status. */
enum refusal { REFUSED_QUEUE_FULL = -1, REFUSED_INLINE = -2 };

/* ---- set-up: NULL when memory is short ---- */

/* Room for so many completions. `event` becomes true when one can be polled. */
struct cq *cq_new(struct clock *clock, uint32_t capacity, bool *event);
void cq_free(struct cq *cq);

/* Receives of one protection domain that several queue pairs share. */
struct verbs_srq *verbs_srq_new(struct nic *nic, uint32_t pd, uint32_t max_wr);
void verbs_srq_free(struct verbs_srq *srq);
/* For qp_config. */
struct srq *verbs_srq_queue(struct verbs_srq *srq);

/* Takes a queue pair of nic_add_qp on. With a shared receive queue its own has no slots. Each of
 * those to send has room for so many bytes of inline data. */
struct verbs_qp *verbs_qp_new(struct qp *qp, struct cq *send_cq, struct cq *recv_cq,
                              uint32_t max_send_wr, uint32_t max_recv_wr, uint32_t max_inline_data);
/* All three are freed after the NIC, which posts into them. */
void verbs_qp_free(struct verbs_qp *qp);

/* ---- at work ---- */

/* qp_modify; RESET also takes back what nobody has polled of the queue pair's completions. */
bool verbs_modify(struct verbs_qp *qp, enum qp_state to, int64_t now_ps);

/* 0 when it was posted; else an enum status, or enum refusal: nothing has changed. A queue pair
 * that has failed takes everything, and flushes it. */
int verbs_post_send(struct verbs_qp *qp, const struct send_request *request, int64_t now_ps);
int verbs_post_recv(struct verbs_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t length,
                    uint32_t lkey, int64_t now_ps);
int verbs_post_srq_recv(struct verbs_srq *srq, uint64_t wr_id, uint64_t addr, uint32_t length,
                        uint32_t lkey, int64_t now_ps);

/* Takes the oldest completion; false when there is none. */
bool cq_poll(struct cq *cq, struct work_completion *completion);

/* Whether a completion was lost because nobody had taken the ones before. */
bool cq_is_overrun(const struct cq *cq);

#endif
