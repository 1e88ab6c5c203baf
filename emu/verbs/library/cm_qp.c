/* The queue pairs of identifiers: made, and taken through their states. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_library.h"

/* ---- attributes ----------------------------------------------------------------------------- */

static void init_attributes(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = PORT_NUMBER};
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (id->id.qp_type == IBV_QPT_UD) {
        attr->qkey = RDMA_UDP_QKEY;
        *mask |= IBV_QP_QKEY;
        return;
    }
    attr->qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    *mask |= IBV_QP_ACCESS_FLAGS;
}

void set_ah_attr(struct ibv_ah_attr *to, const struct uverbs_cm_path *path)
{
    const struct connection *nics = connection();
    *to = (struct ibv_ah_attr){.dlid = path->remote_lid, .sl = path->sl, .port_num = PORT_NUMBER};
    if (!nics || !nics->device.is_ethernet)
        return;
    to->is_global = 1;
    to->grh.hop_limit = path->hop_limit;
    to->grh.traffic_class = path->traffic_class;
    memcpy(to->grh.dgid.raw, path->remote_gid, sizeof path->remote_gid);
}

static void rtr_attributes(const struct cm_id *id, const struct uverbs_reply *reply,
                           struct ibv_qp_attr *attr, int *mask)
{
    *attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                 .path_mtu = mtu_code(reply->attr.path_mtu),
                                 .dest_qp_num = reply->attr.dest_qp_num,
                                 .rq_psn = reply->attr.rq_psn,
                                 .max_dest_rd_atomic = reply->attr.max_dest_rd_atomic,
                                 .min_rnr_timer = reply->attr.min_rnr_timer};
    set_ah_attr(&attr->ah_attr, &reply->cm.state.path);
    *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (id->id.qp_type == IBV_QPT_RC)
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void rts_attributes(const struct cm_id *id, const struct uverbs_reply *reply,
                           struct ibv_qp_attr *attr, int *mask)
{
    *attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                 .sq_psn = reply->attr.sq_psn,
                                 .timeout = reply->attr.timeout,
                                 .retry_cnt = reply->attr.retry_cnt,
                                 .rnr_retry = reply->attr.rnr_retry,
                                 .max_rd_atomic = reply->attr.max_rd_atomic};
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (id->id.qp_type == IBV_QPT_RC)
        *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

/* For the state in `attr`. Returns 0 or errno. */
static int attributes(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    if (attr->qp_state == IBV_QPS_INIT) {
        init_attributes(id, attr, mask);
        return 0;
    }
    if (attr->qp_state != IBV_QPS_RTR && attr->qp_state != IBV_QPS_RTS)
        return EINVAL;
    int error = ask_about(id, UVERBS_CM_QUERY_QP, &request, &reply);
    if (error)
        return error;
    if (attr->qp_state == IBV_QPS_RTR)
        rtr_attributes(id, &reply, attr, mask);
    else
        rts_attributes(id, &reply, attr, mask);
    return 0;
}

EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    return result_of(attributes(own_id(id), attr, mask));
}

/* ---- states --------------------------------------------------------------------------------- */

int modify_to_rtr(struct cm_id *id, uint8_t responder_resources)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask, error = attributes(id, &attr, &mask);
    if (error)
        return error;
    if (responder_resources != RDMA_MAX_RESP_RES)
        attr.max_dest_rd_atomic = responder_resources;
    return ibv_modify_qp(id->id.qp, &attr, mask);
}

int modify_to_rts(struct cm_id *id, uint8_t initiator_depth)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    int mask, error = attributes(id, &attr, &mask);
    if (error)
        return error;
    if (initiator_depth != RDMA_MAX_INIT_DEPTH)
        attr.max_rd_atomic = initiator_depth;
    return ibv_modify_qp(id->id.qp, &attr, mask);
}

void modify_to_error(struct cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (id->id.qp)
        ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
}

/* One that receives at once; a queue pair for datagrams sends, too. */
static int begin(struct cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask, error = attributes(id, &attr, &mask);
    if (!error)
        error = ibv_modify_qp(id->id.qp, &attr, mask);
    if (error || id->id.qp_type != IBV_QPT_UD)
        return error;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
    error = ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
    return error ? error : ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* ---- completion queues that the program does not name --------------------------------------- */

static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
                     struct ibv_cq **cq)
{
    *channel = ibv_create_comp_channel(id->verbs);
    *cq = *channel ? ibv_create_cq(id->verbs, entries ? (int)entries : 1, id, *channel, 0) : NULL;
    return *cq ? 0 : errno;
}

static void destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
    if (*cq)
        ibv_destroy_cq(*cq);
    if (*channel)
        ibv_destroy_comp_channel(*channel);
    *cq = NULL;
    *channel = NULL;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
    if (id->recv_cq_channel)
        destroy_cq(&id->recv_cq_channel, &id->recv_cq);
    if (id->send_cq_channel)
        destroy_cq(&id->send_cq_channel, &id->send_cq);
}

static int name_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr *attr)
{
    int error = 0;
    if (!attr->recv_cq && !id->recv_cq)
        error = create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
    if (!error && !attr->send_cq && !id->send_cq)
        error = create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
    if (!attr->recv_cq)
        attr->recv_cq = id->recv_cq;
    if (!attr->send_cq)
        attr->send_cq = id->send_cq;
    return error;
}

/* ---- making and destroying
 * ------------------------------------------------------------------------ */

static int create_qp(struct cm_id *own, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id = &own->id;
    if (id->qp || !id->verbs || (pd && pd->context != id->verbs)) {
        debug("rdma_create_qp needs an identifier with a resolved address and without a queue "
              "pair, and a protection domain of its verbs");
        return EINVAL;
    }
    if (pd)
        id->pd = pd;
    int error = name_cqs(id, attr);
    if (!attr->srq)
        attr->srq = id->srq;
    if (!error)
        id->qp = ibv_create_qp(id->pd, attr);
    if (!error && !id->qp)
        error = errno;
    id->qp_type = attr->qp_type;
    if (!error)
        error = begin(own);
    if (error)
        rdma_destroy_qp(id);
    return error;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return result_of(create_qp(own_id(id), pd, attr));
}

EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    if (attr->comp_mask & ~known ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
        return result_of(unsupported("this extended queue pair"));
    struct ibv_qp_init_attr basic = {.qp_context = attr->qp_context,
                                     .send_cq = attr->send_cq,
                                     .recv_cq = attr->recv_cq,
                                     .srq = attr->srq,
                                     .cap = attr->cap,
                                     .qp_type = attr->qp_type,
                                     .sq_sig_all = attr->sq_sig_all};
    struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
    int error = create_qp(own_id(id), pd, &basic);
    attr->cap = basic.cap;
    return result_of(error);
}

EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
    if (id->qp)
        ibv_destroy_qp(id->qp);
    id->qp = NULL;
    destroy_cqs(id);
}

EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (id->srq || !id->verbs)
        return result_of(EINVAL);
    if (pd)
        id->pd = pd;
    id->srq = ibv_create_srq(id->pd, attr);
    return id->srq ? 0 : -1;
}

EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC)
        return result_of(unsupported("a shared receive queue for XRC or tag matching"));
    struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};
    return rdma_create_srq(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL, &basic);
}

EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
    if (id->srq)
        ibv_destroy_srq(id->srq);
    id->srq = NULL;
}
