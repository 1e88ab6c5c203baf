/* Verbs that this NIC does not have. Each says so and ends with EOPNOTSUPP, in place of libibverbs'
 * own, which would take the objects of this library for those of a driver.
 *
 * Functions that need an object of such a kind are left out: no program has one. */
#include "library.h"

/* ---- memory ------------------------------------------------------------------------------- */

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    (void)pd, (void)type;
    unsupported("a memory window");
    return NULL;
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
    (void)pd;
    unsupported("a memory region without memory (ibv_alloc_null_mr)");
    return NULL;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    (void)context, (void)attr;
    unsupported("memory of the device (ibv_alloc_dm)");
    return NULL;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *list, uint32_t count)
{
    (void)pd, (void)advice, (void)flags, (void)list, (void)count;
    return unsupported("advice on memory on demand (ibv_advise_mr)");
}

/* ---- domains -------------------------------------------------------------------------------- */

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("a thread domain");
    return NULL;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
                                          struct ibv_parent_domain_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("a parent domain");
    return NULL;
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("an XRC domain");
    return NULL;
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    (void)context, (void)attr;
    unsupported("a queue pair of another process (ibv_open_qp)");
    return NULL;
}

static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
    (void)qp, (void)attr;
    return unsupported("a rate limit of a queue pair");
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    (void)cq, (void)attr;
    return unsupported("moderation of a completion queue's events");
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
    (void)srq, (void)number;
    return unsupported("the number of a shared receive queue, which XRC has");
}

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad)
{
    (void)srq;
    *bad = op;
    return unsupported("tag matching");
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("a queue of receives of raw packets (ibv_create_wq)");
    return NULL;
}

static struct ibv_rwq_ind_table *create_rwq_ind_table(struct ibv_context *context,
                                                      struct ibv_rwq_ind_table_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("a table of receive queues (ibv_create_rwq_ind_table)");
    return NULL;
}

/* ---- flows and counters --------------------------------------------------------------------- */

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
    (void)qp, (void)attr;
    unsupported("a flow of raw packets (ibv_create_flow)");
    return NULL;
}

static struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context,
                                                      struct ibv_flow_action_esp_attr *attr)
{
    (void)context, (void)attr;
    unsupported("encryption (ibv_create_flow_action_esp)");
    return NULL;
}

static struct ibv_counters *create_counters(struct ibv_context *context,
                                            struct ibv_counters_init_attr *attr)
{
    (void)context, (void)attr;
    unsupported("counters of flows (ibv_create_counters)");
    return NULL;
}

void refuse_the_rest(struct verbs_context *verbs)
{
    verbs->context.ops.alloc_mw = alloc_mw;
    verbs->alloc_null_mr = alloc_null_mr;
    verbs->alloc_dm = alloc_dm;
    verbs->advise_mr = advise_mr;
    verbs->alloc_td = alloc_td;
    verbs->alloc_parent_domain = alloc_parent_domain;
    verbs->open_xrcd = open_xrcd;
    verbs->open_qp = open_qp;
    verbs->modify_qp_rate_limit = modify_qp_rate_limit;
    verbs->modify_cq = modify_cq;
    verbs->get_srq_num = get_srq_num;
    verbs->post_srq_ops = post_srq_ops;
    verbs->create_wq = create_wq;
    verbs->create_rwq_ind_table = create_rwq_ind_table;
    verbs->ibv_create_flow = create_flow;
    verbs->create_flow_action_esp = create_flow_action_esp;
    verbs->create_counters = create_counters;
}

/* ---- objects of other processes, and addresses ---------------------------------------------- */

EXPORT struct ibv_context *ibv_import_device(int fd)
{
    (void)fd;
    unsupported("a device of another process (ibv_import_device)");
    return NULL;
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    unsupported("a protection domain of another process (ibv_import_pd)");
    return NULL;
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd; /* there is none */
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    (void)pd, (void)handle;
    unsupported("a memory region of another process (ibv_import_mr)");
    return NULL;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr; /* there is none */
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    unsupported("memory of a device, of another process (ibv_import_dm)");
    return NULL;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm; /* there is none */
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                       uint8_t mac[6], uint16_t *vlan)
{
    (void)context, (void)attr, (void)mac, (void)vlan;
    return unsupported("the MAC address of a GID (ibv_resolve_eth_l2_from_gid)");
}
