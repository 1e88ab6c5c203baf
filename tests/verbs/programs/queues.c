/* `queues CASE`: queue pairs that are reset or destroyed while completions wait to be polled. Ends
 * with 0 if no place of any queue is lost, and none is given twice. */
#include "one_host.h"

enum { WRS = 16, WAIT_S = 1 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Those that come within a second. */
static int count_completions(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count = 0;
    for (double end = now_s() + WAIT_S; now_s() < end;)
        count += ibv_poll_cq(cq, 1, &wc);
    return count;
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static int receive(struct ibv_qp *qp)
{
    struct ibv_sge sge = {.addr = far_end.own.addr, .length = 64, .lkey = far_end.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    return ibv_post_recv(qp, &wr, &bad);
}

static int receive_shared(struct ibv_srq *srq)
{
    struct ibv_sge sge = {.addr = far_end.own.addr, .length = 64, .lkey = far_end.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    return ibv_post_srq_recv(srq, &wr, &bad);
}

/* Exactly as many requests fit as the queue has places. */
static void fill_receives(struct ibv_qp *qp)
{
    for (int i = 0; i < WRS; i++)
        MUST(receive(qp) == 0);
    MUST(receive(qp) == ENOMEM);
}

/* The sender's completions show that the receiver has its own. */
static void send_all(struct end *sender, int count)
{
    sender->own.addr = far_end.own.addr;
    sender->mr = far_end.mr;
    for (int i = 0; i < count; i++) {
        MUST(end_send(sender, IBV_WR_SEND, 8) == 0);
        MUST(next_completion(sender->cq).status == IBV_WC_SUCCESS);
    }
}

/* A queue pair with a completion queue of its own, connected to another. */
static void make_pair(struct end *sender, struct end *receiver, struct ibv_cq *cq,
                      struct ibv_srq *srq)
{
    *sender = *receiver = near_end;
    end_add_qp(sender, ibv_create_cq(near_end.context, 64, NULL, NULL, 0), NULL, WRS);
    end_add_qp(receiver, cq, srq, WRS);
    connect_ends(sender, receiver);
}

static void reset_drops_completions(void)
{
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    struct end sender, receiver, other_sender, other;
    make_pair(&sender, &receiver, cq, NULL);
    make_pair(&other_sender, &other, cq, NULL);
    for (int round = 0; round < 3; round++) {
        fill_receives(receiver.qp);
        for (int i = 0; i < 4; i++)
            MUST(receive(other.qp) == 0);
        for (int i = 0; i < 4; i++) {
            send_all(&sender, WRS / 4);
            send_all(&other_sender, 1);
        }
        to_state(sender.qp, IBV_QPS_RESET);
        to_state(receiver.qp, IBV_QPS_RESET);
        for (int i = 0; i < 4; i++)
            MUST(next_completion(cq).qp_num == other.qp->qp_num);
        MUST(count_completions(cq) == 0);
        to_rts(&sender, &receiver);
    }
    fill_receives(receiver.qp);
    send_all(&sender, WRS);
    MUST(count_completions(cq) == WRS);
    fill_receives(receiver.qp);
}

/* As pools of connections do: ERR, RESET, and connected again. */
static void recycled(void)
{
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    struct end sender, receiver;
    make_pair(&sender, &receiver, cq, NULL);
    for (int round = 0; round < 3; round++) {
        fill_receives(receiver.qp);
        to_state(receiver.qp, IBV_QPS_ERR);
        usleep(100);
        to_state(receiver.qp, IBV_QPS_RESET);
        to_state(sender.qp, IBV_QPS_RESET);
        to_rts(&sender, &receiver);
    }
    fill_receives(receiver.qp);
    send_all(&sender, WRS);
    MUST(count_completions(cq) == WRS);
}

static void destroyed_with_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = WRS, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(near_end.pd, &init);
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    for (int round = 0; round < 4; round++) {
        struct end sender, receiver;
        make_pair(&sender, &receiver, cq, srq);
        for (int i = 0; i < WRS; i++)
            MUST(receive_shared(srq) == 0);
        MUST(receive_shared(srq) == ENOMEM);
        send_all(&sender, WRS);
        MUST(ibv_destroy_qp(receiver.qp) == 0 && ibv_destroy_qp(sender.qp) == 0);
        MUST(count_completions(cq) == 0);
    }
}

/* The receive of a message that has not arrived as a whole. */
static void destroyed_in_a_message(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(near_end.pd, &init);
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    for (int round = 0; round < 4; round++) {
        struct ibv_sge sge = {
            .addr = far_end.own.addr, .length = WINDOW_BYTES, .lkey = far_end.mr->lkey};
        struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
        struct end sender, receiver;
        make_pair(&sender, &receiver, cq, srq);
        MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
        sender.own.addr = far_end.own.addr;
        sender.mr = far_end.mr;
        MUST(end_send(&sender, IBV_WR_SEND, WINDOW_BYTES) == 0);
        struct timespec some = {.tv_nsec = 4000}; /* 64 KB take 5 us at 100 Gbit/s */
        nanosleep(&some, NULL);
        MUST(ibv_destroy_qp(receiver.qp) == 0 && ibv_destroy_qp(sender.qp) == 0);
        MUST(count_completions(cq) == 0);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"reset_drops_completions", reset_drops_completions},
        {"recycled", recycled},
        {"destroyed_with_srq", destroyed_with_srq},
        {"destroyed_in_a_message", destroyed_in_a_message},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
