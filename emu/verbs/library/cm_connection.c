/* Connections: requested, accepted, ended. */
#include <errno.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "cm_library.h"

enum { MOST_RETRIES = 7 };

/* ---- parameters ----------------------------------------------------------------------------- */

/* Returns 0, or EINVAL with a reason. */
static int check(const struct rdma_conn_param *param)
{
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    uint32_t most = nics->device.max_rd_atomic;
    bool fits =
        !param ||
        ((param->responder_resources <= most || param->responder_resources == RDMA_MAX_RESP_RES) &&
         (param->initiator_depth <= most || param->initiator_depth == RDMA_MAX_INIT_DEPTH));
    if (fits)
        return 0;
    debug("responder_resources and initiator_depth are at most %u here", most);
    return EINVAL;
}

static uint8_t or_most(uint8_t wanted, uint8_t most)
{
    return wanted == RDMA_MAX_RESP_RES ? most : wanted;
}

static uint8_t lower(uint8_t one, uint8_t other)
{
    return one < other ? one : other;
}

static uint8_t device_most(void)
{
    return (uint8_t)connection()->device.max_rd_atomic;
}

static int fill_private(struct uverbs_cm_param *to, const void *data, size_t length)
{
    if (length > sizeof to->private_data)
        return EINVAL;
    to->private_bytes = (uint8_t)length;
    if (length)
        memcpy(to->private_data, data, length);
    return 0;
}

/* Returns 0 or errno. */
static int fill(const struct cm_id *id, const struct rdma_conn_param *from,
                struct uverbs_cm_param *to)
{
    *to = (struct uverbs_cm_param){.responder_resources = id->responder_resources,
                                   .initiator_depth = id->initiator_depth,
                                   .retry_count = MOST_RETRIES,
                                   .rnr_retry_count = MOST_RETRIES,
                                   .qkey = RDMA_UDP_QKEY,
                                   .is_unreliable = id->id.qp_type == IBV_QPT_UC};
    if (from) {
        to->flow_control = from->flow_control;
        to->retry_count = lower(from->retry_count, MOST_RETRIES);
        to->rnr_retry_count = lower(from->rnr_retry_count, MOST_RETRIES);
        to->qp_num = from->qp_num;
        to->srq = from->srq;
    }
    if (id->id.qp) {
        to->qp_num = id->id.qp->qp_num;
        to->srq = id->id.qp->srq != NULL;
    }
    return from && from->private_data_len
               ? fill_private(to, from->private_data, from->private_data_len)
               : fill_private(to, id->connect_data, id->connect_bytes);
}

/* ---- calls
 * --------------------------------------------------------------------------------------- */

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {.cm = {.backlog = backlog > 0 ? (uint32_t)backlog : 0}};
    struct uverbs_reply reply;
    int error = ask_about(own, UVERBS_CM_LISTEN, &request, &reply);
    if (!error)
        set_addresses(own, &reply.cm.state);
    return result_of(error);
}

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    int error = check(param);
    if (error)
        return result_of(error);
    own->responder_resources =
        param ? or_most(param->responder_resources, device_most()) : device_most();
    own->initiator_depth = param ? or_most(param->initiator_depth, device_most()) : device_most();
    error = fill(own, param, &request.cm.param);
    if (!error)
        error = ask_about(own, UVERBS_CM_CONNECT, &request, &reply);
    return error ? result_of(error) : finish(own);
}

/* The queue pair must take what the other end sends before it knows that it may. */
static int make_ready(struct cm_id *id)
{
    if (!id->id.qp || id->id.qp_type == IBV_QPT_UD)
        return 0;
    int error = modify_to_rtr(id, id->responder_resources);
    return error ? error : modify_to_rts(id, id->initiator_depth);
}

EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    int error = check(param);
    if (error)
        return result_of(error);
    if (param && param->responder_resources != RDMA_MAX_RESP_RES)
        own->responder_resources = param->responder_resources;
    if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
        own->initiator_depth = param->initiator_depth;
    own->responder_resources = lower(own->responder_resources, device_most());
    own->initiator_depth = lower(own->initiator_depth, device_most());
    error = make_ready(own);
    if (!error)
        error = fill(own, param, &request.cm.param);
    if (!error)
        error = ask_about(own, UVERBS_CM_ACCEPT, &request, &reply);
    if (error) {
        modify_to_error(own);
        return result_of(error);
    }
    return id->ps == RDMA_PS_UDP ? 0 : finish(own);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    int error = fill_private(&request.cm.param, data, length);
    if (!error)
        error = ask_about(own_id(id), UVERBS_CM_REJECT, &request, &reply);
    return result_of(error);
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    return rdma_reject(id, data, length);
}

EXPORT int rdma_establish(struct rdma_cm_id *id)
{
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    if (id->qp)
        return result_of(EINVAL);
    return result_of(ask_about(own_id(id), UVERBS_CM_ESTABLISH, &request, &reply));
}

EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    modify_to_error(own);
    int error = ask_about(own, UVERBS_CM_DISCONNECT, &request, &reply);
    return error ? result_of(error) : finish(own);
}

EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    (void)id, (void)event; /* the NICs know it before the program does */
    return 0;
}

/* ---- requests of an identifier without a channel of the program ----------------------------- */

static int take_request(struct rdma_cm_id *listen, struct rdma_cm_event *event)
{
    struct cm_id *own = own_id(listen);
    if (event->status)
        return event->status < 0 ? -event->status : event->status;
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        return EINVAL;
    struct ibv_qp_init_attr attr = own->qp_init_attr;
    if (own->makes_qps && rdma_create_qp(event->id, listen->pd, &attr) != 0)
        return errno;
    return 0;
}

EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
    struct rdma_cm_event *event;
    if (!own_id(listen)->is_sync)
        return result_of(EINVAL);
    if (listen->event)
        rdma_ack_cm_event(listen->event);
    listen->event = NULL;
    if (rdma_get_cm_event(listen->channel, &event) != 0)
        return -1;
    int error = take_request(listen, event);
    if (error) {
        listen->event = event;
        return result_of(error);
    }
    *id = event->id;
    (*id)->event = event;
    return 0;
}

/* ---- not here
 * ------------------------------------------------------------------------------------- */

EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    (void)id, (void)addr, (void)context;
    return result_of(unsupported("multicast"));
}

EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                  void *context)
{
    (void)id, (void)attr, (void)context;
    return result_of(unsupported("multicast"));
}

EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    (void)id, (void)addr;
    return result_of(unsupported("multicast"));
}

/* Those of librdmacm know the inside of its identifiers, which these have not. */
EXPORT int rsocket(int domain, int type, int protocol)
{
    (void)domain, (void)type, (void)protocol;
    return result_of(unsupported("rsockets"));
}

EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    (void)id;
    return result_of(ece->vendor_id ? unsupported("enhanced connection establishment") : 0);
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    (void)id;
    *ece = (struct ibv_ece){0};
    return 0;
}
