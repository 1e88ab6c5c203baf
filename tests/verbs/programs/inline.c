/* `inline CASE`: inline data where there is none. Ends with 0 if each request is refused at once or
 * completes. */
#include "one_host.h"

static struct ibv_qp *qp_with(uint64_t operations, uint32_t max_inline_data)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = near_end.cq,
                                       .recv_cq = near_end.cq,
                                       .cap = {.max_send_wr = 16,
                                               .max_recv_wr = 16,
                                               .max_send_sge = 1,
                                               .max_recv_sge = 1,
                                               .max_inline_data = max_inline_data},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = near_end.pd,
                                       .send_ops_flags = operations};
    struct ibv_qp *qp = ibv_create_qp_ex(near_end.context, &attr);
    MUST(qp);
    return qp;
}

static struct end connected_end(void)
{
    struct end one = near_end, other = near_end;
    one.qp = qp_with(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE, 64);
    other.qp = qp_with(0, 64);
    one.own.qpn = one.qp->qp_num;
    other.own.qpn = other.qp->qp_num;
    connect_ends(&one, &other);
    one.mr = far_end.mr;
    one.own.addr = far_end.own.addr;
    one.far.addr = far_end.own.addr + 4096;
    one.far.rkey = far_end.mr->rkey;
    return one;
}

static int post_inline(const struct end *end, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {.addr = end->own.addr, .length = 8, .lkey = end->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
    wr.wr.rdma.remote_addr = end->far.addr;
    wr.wr.rdma.rkey = end->far.rkey;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = end->far.addr;
        wr.wr.atomic.rkey = end->far.rkey;
    }
    int error = ibv_post_send(end->qp, &wr, &bad);
    MUST(!error || bad == &wr);
    return error;
}

/* The queue pair goes on, and nothing of the refused request is left. */
static void must_work(const struct end *end)
{
    for (int i = 0; i < 16; i++)
        MUST(post_inline(end, IBV_WR_RDMA_WRITE) == 0);
    for (int i = 0; i < 16; i++)
        MUST(next_completion(end->cq).status == IBV_WC_SUCCESS);
}

static void fetches(void)
{
    struct end end = connected_end();
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                          IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        MUST(post_inline(&end, opcodes[i]) == EINVAL);
        must_work(&end);
    }
}

static void extended_fetch(void)
{
    struct end end = connected_end();
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end.qp);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(qp, end.far.rkey, end.far.addr);
    ibv_wr_set_inline_data(qp, window, 8);
    MUST(ibv_wr_complete(qp) == EINVAL);
    must_work(&end);
}

/* In the extended way the setter chooses, not the flag. */
static void extended_flag(void)
{
    struct end end = connected_end();
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end.qp);
    strcpy(window, "not inline");
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_wr_rdma_write(qp, end.far.rkey, end.far.addr);
    ibv_wr_set_sge(qp, end.mr->lkey, end.own.addr, 11);
    MUST(ibv_wr_complete(qp) == 0);
    MUST(next_completion(end.cq).status == IBV_WC_SUCCESS);
    MUST(strcmp(window + 4096, "not inline") == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"fetches", fetches},
        {"extended_fetch", extended_fetch},
        {"extended_flag", extended_flag},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
