/* `objects CASE`: objects that change, and their events. Ends with 0 if all is as the manual pages
 * say. */
#include "one_host.h"

#include <pthread.h>

enum { REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, RECEIVES = 4 };

static void grown_cq(void)
{
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 4, NULL, NULL, 0);
    struct end one = near_end, other = near_end;
    end_add_qp(&one, cq, NULL, 64);
    end_add_qp(&other, cq, NULL, 64);
    connect_ends(&one, &other);
    end_register(&one, window, sizeof window);
    one.far.addr = one.own.addr;
    one.far.rkey = one.own.rkey;
    for (int i = 0; i < 3; i++)
        MUST(end_send(&one, IBV_WR_RDMA_WRITE, 8) == 0);
    struct ibv_wc wc;
    MUST(next_completion(cq).status == IBV_WC_SUCCESS);
    MUST(ibv_resize_cq(cq, 40) == 0 && cq->cqe == 40);
    for (int i = 0; i < 38; i++)
        MUST(end_send(&one, IBV_WR_RDMA_WRITE, 8) == 0);
    for (int i = 0; i < 40; i++)
        MUST(next_completion(cq).status == IBV_WC_SUCCESS);
    MUST(ibv_poll_cq(cq, 1, &wc) == 0);
    MUST(ibv_resize_cq(cq, 1 << 30) == EINVAL && ibv_resize_cq(cq, 0) == EINVAL);
}

static enum ibv_event_type next_event(struct ibv_async_event *event)
{
    MUST(ibv_get_async_event(near_end.context, event) == 0);
    return event->event_type;
}

static void post(struct ibv_srq *srq)
{
    struct ibv_sge sge = {.addr = far_end.own.addr, .length = 64, .lkey = far_end.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

/* A queue pair that receives from the shared queue, and one that sends to it. */
static void shared_queue(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(near_end.pd, &init);
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    struct end sender = near_end, receiver = near_end;
    MUST(srq && cq);
    end_add_qp(&sender, cq, NULL, 16);
    end_add_qp(&receiver, cq, srq, 16);
    end_register(&sender, window, sizeof window);
    for (int i = 0; i < RECEIVES; i++)
        post(srq);
    connect_ends(&sender, &receiver);
    struct ibv_srq_attr limit = {.srq_limit = RECEIVES - 1};
    MUST(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
    struct ibv_srq_attr shown;
    MUST(ibv_query_srq(srq, &shown) == 0 && shown.srq_limit == RECEIVES - 1);
    for (int i = 0; i < 2; i++) {
        MUST(end_send(&sender, IBV_WR_SEND, 8) == 0);
        MUST(next_completion(cq).status == IBV_WC_SUCCESS);
        MUST(next_completion(cq).status == IBV_WC_SUCCESS);
    }
    struct ibv_async_event event;
    MUST(next_event(&event) == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
    ibv_ack_async_event(&event);
    MUST(ibv_query_srq(srq, &shown) == 0 && shown.srq_limit == 0);
    struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
    MUST(ibv_modify_qp(receiver.qp, &to_error, IBV_QP_STATE) == 0);
    MUST(next_event(&event) == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == receiver.qp);
    ibv_ack_async_event(&event);
    MUST(ibv_destroy_qp(receiver.qp) == 0 && ibv_destroy_srq(srq) == 0);
}

static volatile bool destroyed;

static void *destroy_qp(void *qp)
{
    MUST(ibv_destroy_qp(qp) == 0);
    destroyed = true;
    return NULL;
}

static void unacknowledged(void)
{
    struct ibv_async_event event;
    pthread_t thread;
    near_end.far.rkey = 77;
    near_end.own.addr = far_end.own.addr;
    near_end.mr = far_end.mr;
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
    MUST(next_completion(near_end.cq).status == IBV_WC_REM_ACCESS_ERR);
    MUST(next_event(&event) == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == far_end.qp);
    MUST(pthread_create(&thread, NULL, destroy_qp, far_end.qp) == 0);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        MUST(!destroyed);
    }
    ibv_ack_async_event(&event);
    MUST(pthread_join(thread, NULL) == 0 && destroyed);
}

/* Receives that a reset has forgotten can be posted again, as often as wanted. */
static void reset(void)
{
    struct ibv_qp_attr to_reset = {.qp_state = IBV_QPS_RESET};
    near_end.own.addr = far_end.own.addr;
    near_end.mr = far_end.mr;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 16; i++)
            end_receive(&near_end, 64);
        if (round == 4)
            break;
        MUST(ibv_modify_qp(near_end.qp, &to_reset, IBV_QP_STATE) == 0);
        MUST(ibv_modify_qp(far_end.qp, &to_reset, IBV_QP_STATE) == 0);
        to_rts(&near_end, &far_end);
    }
    for (int i = 0; i < 16; i++) {
        MUST(end_send(&far_end, IBV_WR_SEND, 8) == 0);
        MUST(next_completion(far_end.cq).status == IBV_WC_SUCCESS);
        MUST(next_completion(far_end.cq).status == IBV_WC_SUCCESS);
    }
}

static void late_rts(void)
{
    struct ibv_qp_attr to_reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_async_event event;
    MUST(ibv_modify_qp(near_end.qp, &to_reset, IBV_QP_STATE) == 0);
    end_to_init(&near_end);
    end_to_rtr(&near_end);
    far_end.far.addr = far_end.own.addr;
    far_end.far.rkey = far_end.own.rkey;
    MUST(end_send(&far_end, IBV_WR_RDMA_WRITE, 8) == 0);
    MUST(next_event(&event) == IBV_EVENT_COMM_EST && event.element.qp == near_end.qp);
    ibv_ack_async_event(&event);
    MUST(next_completion(far_end.cq).status == IBV_WC_SUCCESS);
}

static void expect_drained(void)
{
    struct ibv_qp_attr halt = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_async_event event;
    MUST(ibv_modify_qp(near_end.qp, &halt, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
    MUST(next_event(&event) == IBV_EVENT_SQ_DRAINED && event.element.qp == near_end.qp);
    ibv_ack_async_event(&event);
}

/* In SQD a send that was begun goes on to its end, and then the event comes. Others wait. */
static void drained(void)
{
    static const struct timespec in_the_middle = {.tv_nsec = 1000};
    struct ibv_qp_attr back = {.qp_state = IBV_QPS_RTS};
    struct ibv_wc wc;
    near_end.mr = far_end.mr;
    near_end.own = far_end.own;
    near_end.far.addr = far_end.own.addr;
    near_end.far.rkey = far_end.own.rkey;
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, sizeof window) == 0);
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
    nanosleep(&in_the_middle, NULL);
    MUST(ibv_poll_cq(near_end.cq, 1, &wc) == 0);
    expect_drained();
    MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    MUST(ibv_poll_cq(near_end.cq, 1, &wc) == 0);
    MUST(ibv_modify_qp(near_end.qp, &back, IBV_QP_STATE) == 0);
    MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    expect_drained();
}

/* More than the NIC has room for. */
static void too_many_regions(void)
{
    static char memory[64];
    static struct ibv_mr *regions[8192];
    int count = 0;
    while (count < 8192 && (regions[count] = ibv_reg_mr(near_end.pd, memory, sizeof memory,
                                                        IBV_ACCESS_LOCAL_WRITE)))
        count++;
    MUST(errno == ENOMEM && count > 4000 && count <= 4096);
    while (count--)
        MUST(ibv_dereg_mr(regions[count]) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"grown_cq", grown_cq},
        {"shared_queue", shared_queue},
        {"unacknowledged", unacknowledged},
        {"reset", reset},
        {"late_rts", late_rts},
        {"drained", drained},
        {"too_many_regions", too_many_regions},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
