/* `datagrams CASE`: a queue pair that sends datagrams to itself. Ends with 0 if each has the bytes
 * that its memory had when it was posted, or ends with the right error. */
#include "one_host.h"

enum { GRH_BYTES = 40, QKEY = 0x11, RECEIVE_BYTES = 2048, TOO_LONG_TO_COPY = 1500 };

static char *const received = window + 4096;

static struct ibv_qp *datagram_qp(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = near_end.cq,
        .recv_cq = near_end.cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = near_end.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(near_end.context, &attr);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    MUST(qp);
    MUST(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
    to.qp_state = IBV_QPS_RTR;
    MUST(ibv_modify_qp(qp, &to, IBV_QP_STATE) == 0);
    to.qp_state = IBV_QPS_RTS;
    MUST(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    return qp;
}

static struct ibv_ah *own_address(void)
{
    struct ibv_ah_attr attr = {.dlid = (uint16_t)near_end.own.lid,
                               .port_num = 1,
                               .is_global = near_end.is_ethernet,
                               .grh = {.dgid = near_end.own.gid, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(near_end.pd, &attr);
    MUST(ah);
    return ah;
}

static void receive_at(struct ibv_qp *qp, uint64_t place)
{
    struct ibv_sge sge = {.addr = (uintptr_t)received + place * RECEIVE_BYTES,
                          .length = RECEIVE_BYTES,
                          .lkey = far_end.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1};
    MUST(ibv_post_recv(qp, &wr, &bad) == 0);
}

static void send_list(struct ibv_qp *qp, struct ibv_ah *ah, struct ibv_sge *list, int count)
{
    struct ibv_send_wr *bad, wr = {.wr_id = 100,
                                   .sg_list = list,
                                   .num_sge = count,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {ah, qp->qp_num, QKEY}};
    MUST(ibv_post_send(qp, &wr, &bad) == 0);
}

static struct ibv_sge piece(uint32_t offset, uint32_t length)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)window + offset, .length = length, .lkey = far_end.mr->lkey};
}

static void must_arrive(uint64_t count, const char *const *texts)
{
    for (uint64_t i = 0; i < 2 * count; i++) /* sends and receives */
        MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < count; i++)
        MUST(strcmp(received + i * RECEIVE_BYTES + GRH_BYTES, texts[i]) == 0);
}

/* The memory is filled anew before the NIC has sent anything. */
static void refilled(void)
{
    struct ibv_qp *qp = datagram_qp();
    struct ibv_ah *ah = own_address();
    struct ibv_sge whole = piece(0, 16), halves[] = {piece(0, 8), piece(8, 8)};
    for (uint64_t place = 0; place < 3; place++)
        receive_at(qp, place);
    strcpy(window, "one and a half");
    send_list(qp, ah, &whole, 1);
    strcpy(window, "another half");
    send_list(qp, ah, halves, 2);
    strcpy(window, "third");
    struct ibv_qp_ex *extended = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(extended);
    extended->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(extended);
    ibv_wr_set_sge(extended, whole.lkey, whole.addr, whole.length);
    ibv_wr_set_ud_addr(extended, ah, qp->qp_num, QKEY);
    MUST(ibv_wr_complete(extended) == 0);
    strcpy(window, "unsent");
    must_arrive(3, (const char *const[]){"one and a half", "another half", "third"});
}

static void long_one(void)
{
    struct ibv_qp *qp = datagram_qp();
    struct ibv_sge whole = piece(0, TOO_LONG_TO_COPY);
    strcpy(window, "long");
    receive_at(qp, 0);
    send_list(qp, own_address(), &whole, 1);
    must_arrive(1, (const char *const[]){"long"});
}

static void must_be_refused(struct ibv_sge sge)
{
    struct ibv_qp *qp = datagram_qp();
    send_list(qp, own_address(), &sge, 1);
    MUST(next_completion(near_end.cq).status == IBV_WC_LOC_PROT_ERR);
}

static void refused(void)
{
    struct ibv_sge wrong_key = piece(0, 16), beyond = piece(WINDOW_BYTES - 8, 16);
    wrong_key.lkey += 1;
    must_be_refused(wrong_key);
    must_be_refused(beyond);
    struct ibv_sge gone = piece(0, 16);
    MUST(ibv_dereg_mr(far_end.mr) == 0);
    must_be_refused(gone);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"refilled", refilled},
        {"long", long_one},
        {"refused", refused},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
