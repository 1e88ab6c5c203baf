/* `attributes CASE`: what ibv_modify_qp and ibv_create_ah refuse. Ends with 0 if that is what
 * ibv_modify_qp(3) says, and the kernel does. The table is the one of that page. */
#include "one_host.h"

enum { ALL_BITS = 21, UNKNOWN_BIT = 1 << 28, RATE_LIMIT = 1 << 25 };

static const int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
static const int retries =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

/* Of the steps to INIT, RTR and RTS: attributes that must be there, and those that may. */
struct masks {
    enum ibv_qp_type type;
    int needed[3], allowed[3];
};

static struct masks masks_of(enum ibv_qp_type type)
{
    const int first = IBV_QP_PKEY_INDEX | IBV_QP_PORT, access = IBV_QP_ACCESS_FLAGS;
    const int answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int partition = IBV_QP_PKEY_INDEX, now = IBV_QP_CUR_STATE;
    if (type == IBV_QPT_RC)
        return (struct masks){type,
                              {first | access, path | answers, IBV_QP_SQ_PSN | retries},
                              {0, partition | access, now | access | IBV_QP_MIN_RNR_TIMER}};
    if (type == IBV_QPT_UC)
        return (struct masks){
            type, {first | access, path, IBV_QP_SQ_PSN}, {0, partition | access, now | access}};
    return (struct masks){type,
                          {first | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN},
                          {0, partition | IBV_QP_QKEY, now | IBV_QP_QKEY}};
}

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {
        .send_cq = near_end.cq,
        .recv_cq = near_end.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(near_end.pd, &init);
    MUST(qp);
    return qp;
}

/* Right values for all attributes. */
static struct ibv_qp_attr values(const struct ibv_qp *qp, enum ibv_qp_state state)
{
    return (struct ibv_qp_attr){.qp_state = state,
                                .cur_qp_state = qp->state,
                                .port_num = 1,
                                .qkey = 0x11,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = near_end.own.qpn,
                                .max_dest_rd_atomic = 1,
                                .max_rd_atomic = 1,
                                .min_rnr_timer = 1,
                                .timeout = 14,
                                .retry_cnt = 3,
                                .rnr_retry = 3,
                                .ah_attr = {.dlid = (uint16_t)near_end.own.lid,
                                            .port_num = 1,
                                            .is_global = near_end.is_ethernet,
                                            .grh = {.dgid = near_end.own.gid, .hop_limit = 64}}};
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = values(qp, state);
    return ibv_modify_qp(qp, &attr, mask);
}

static void refuses(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    enum ibv_qp_state before = qp->state;
    int error = modify(qp, state, mask);
    if (error != EINVAL)
        fprintf(stderr, "type %d to %d with %#x: %s\n", qp->qp_type, state, mask, strerror(error));
    MUST(error == EINVAL && qp->state == before);
}

static bool is_of_alternate_path(int bit)
{
    return (1 << bit) & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

/* Every attribute one by one: missing, or too many. */
static void check_type(enum ibv_qp_type type)
{
    struct masks of = masks_of(type);
    struct ibv_qp *qp = new_qp(type);
    for (int step = 0; step < 3; step++) {
        enum ibv_qp_state state = IBV_QPS_INIT + step;
        int needed = of.needed[step] | IBV_QP_STATE, known = needed | of.allowed[step];
        for (int bit = 1; bit < ALL_BITS; bit++) {
            if (needed & 1 << bit)
                refuses(qp, state, needed & ~(1 << bit));
            else if (!(known & 1 << bit) && !is_of_alternate_path(bit))
                refuses(qp, state, needed | 1 << bit);
        }
        MUST(modify(qp, state, known) == 0 && qp->state == state);
    }
    refuses(qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN); /* it is there already */
    refuses(qp, IBV_QPS_INIT, IBV_QP_STATE | of.needed[0]);
    refuses(qp, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
    MUST(modify(qp, IBV_QPS_SQD, IBV_QP_STATE) == 0);
    MUST(modify(qp, IBV_QPS_RTS, IBV_QP_STATE) == 0);
    MUST(modify(qp, IBV_QPS_ERR, IBV_QP_STATE) == 0);
    refuses(qp, IBV_QPS_RTS, IBV_QP_STATE);
    MUST(modify(qp, IBV_QPS_RESET, IBV_QP_STATE) == 0);
    MUST(ibv_destroy_qp(qp) == 0);
}

static void table(void)
{
    check_type(IBV_QPT_RC);
    check_type(IBV_QPT_UC);
    check_type(IBV_QPT_UD);
}

static void unknown(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    int needed = masks_of(IBV_QPT_RC).needed[0] | IBV_QP_STATE;
    MUST(modify(qp, IBV_QPS_INIT, needed | UNKNOWN_BIT) == EOPNOTSUPP);
    MUST(modify(qp, IBV_QPS_INIT, needed | RATE_LIMIT) == EOPNOTSUPP);
    MUST(modify(qp, IBV_QPS_ERR + 5, needed) == EINVAL);
}

static void wrong_values(void)
{
    struct masks of = masks_of(IBV_QPT_RC);
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    struct ibv_qp_attr attr = values(qp, IBV_QPS_INIT);
    attr.port_num = 2;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | of.needed[0]) == EINVAL);
    attr.port_num = 1;
    attr.pkey_index = 999;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | of.needed[0]) == EINVAL);
    MUST(modify(qp, IBV_QPS_INIT, IBV_QP_STATE | of.needed[0]) == 0);
    attr = values(qp, IBV_QPS_RTR);
    attr.ah_attr.port_num = 7;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | of.needed[1]) == EINVAL);
    attr = values(qp, IBV_QPS_RTR);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.sgid_index = 3;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | of.needed[1]) == EINVAL);
    MUST(modify(qp, IBV_QPS_RTR, IBV_QP_STATE | of.needed[1]) == 0);
    attr = values(qp, IBV_QPS_RTS);
    attr.cur_qp_state = IBV_QPS_SQD;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
    MUST(modify(qp, IBV_QPS_RTS, IBV_QP_STATE | of.needed[2]) == 0);
}

static void address_handles(void)
{
    struct ibv_qp_attr attr = values(near_end.qp, IBV_QPS_RTR);
    struct ibv_ah_attr right = attr.ah_attr, wrong = right;
    MUST(ibv_create_ah(near_end.pd, &right));
    wrong.port_num = 3;
    MUST(!ibv_create_ah(near_end.pd, &wrong) && errno == EINVAL);
    wrong = right;
    wrong.is_global = 1;
    wrong.grh.sgid_index = 5;
    MUST(!ibv_create_ah(near_end.pd, &wrong) && errno == EINVAL);
}

/* For EMU_VERBS_DEBUG. */
static void reasons(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    MUST(modify(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY) == EINVAL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"table", table},
        {"unknown", unknown},
        {"wrong_values", wrong_values},
        {"address_handles", address_handles},
        {"reasons", reasons},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
