/* Event channels, and what events do to identifiers. */
#define _GNU_SOURCE /* pipe2 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm_library.h"

/* ---- channels -------------------------------------------------------------------------------- */

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
    int events[2];
    struct cm_channel *made = calloc(1, sizeof *made);
    if (!made || pipe2(events, O_CLOEXEC) != 0) {
        free(made);
        return NULL;
    }
    struct uverbs_request request = {.command = UVERBS_CM_CREATE_CHANNEL};
    struct uverbs_reply reply;
    int error = ask(&request, &events[1], 1, &reply);
    close(events[1]);
    if (error) {
        close(events[0]);
        free(made);
        errno = error;
        return NULL;
    }
    made->channel.fd = events[0];
    made->handle = reply.handle;
    return &made->channel;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct cm_channel *own = (struct cm_channel *)channel;
    struct uverbs_request request = {.command = UVERBS_CM_DESTROY_CHANNEL, .handle = own->handle};
    struct uverbs_reply reply;
    if (ask(&request, NULL, 0, &reply) == EBUSY)
        debug("an event channel is destroyed before its identifiers");
    close(channel->fd);
    free(own);
}

/* ---- what events do ------------------------------------------------------------------------- */

static void fill_conn(struct rdma_conn_param *to, const struct uverbs_cm_param *from)
{
    *to = (struct rdma_conn_param){.private_data_len = from->private_bytes,
                                   .responder_resources = from->responder_resources,
                                   .initiator_depth = from->initiator_depth,
                                   .flow_control = from->flow_control,
                                   .retry_count = from->retry_count,
                                   .rnr_retry_count = from->rnr_retry_count,
                                   .srq = from->srq,
                                   .qp_num = from->qp_num};
}

static void fill_ud(struct rdma_ud_param *to, const struct uverbs_cm_param *from,
                    const struct uverbs_cm_path *path)
{
    *to = (struct rdma_ud_param){
        .private_data_len = from->private_bytes, .qp_num = from->qp_num, .qkey = from->qkey};
    set_ah_attr(&to->ah_attr, path);
}

static void fill(struct cm_event *to, struct cm_id *id, const struct uverbs_cm_reply *from)
{
    const struct uverbs_cm_param *param = &from->event.param;
    struct rdma_cm_event *event = &to->event;
    const void **private_data = &event->param.conn.private_data;
    event->id = &id->id;
    event->event = (enum rdma_cm_event_type)from->event.kind;
    event->status = from->event.status;
    if (id->id.ps == RDMA_PS_UDP) {
        fill_ud(&event->param.ud, param, &from->state.path);
        private_data = &event->param.ud.private_data;
    } else {
        fill_conn(&event->param.conn, param);
    }
    memcpy(to->private_data, param->private_data, sizeof to->private_data);
    *private_data = param->private_bytes ? to->private_data : NULL;
}

/* The identifier of a request whose listener has no channel of the program has one of its own. */
static int take_request(struct cm_event *to, struct cm_id *id, struct cm_id *listener,
                        const struct uverbs_cm_reply *reply)
{
    const struct rdma_conn_param *conn = &to->event.param.conn;
    to->event.listen_id = &listener->id;
    set_path(id, &reply->state.path);
    if (id->id.ps != RDMA_PS_UDP) {
        id->responder_resources = conn->responder_resources;
        id->initiator_depth = conn->initiator_depth;
    }
    int error = use_device(id);
    if (!error && listener && listener->is_sync && rdma_migrate_id(&id->id, NULL) != 0)
        error = errno;
    return error;
}

/* The other end has accepted: so the queue pair becomes ready. */
static void take_response(struct cm_event *to, struct cm_id *id)
{
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    if (!id->id.qp)
        return;
    int error = modify_to_rtr(id, RDMA_MAX_RESP_RES);
    if (!error)
        error = modify_to_rts(id, RDMA_MAX_INIT_DEPTH);
    if (!error)
        error = ask_about(id, UVERBS_CM_ESTABLISH, &request, &reply);
    to->event.event = error ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
    to->event.status = -error;
    if (!error)
        return;
    modify_to_error(id);
    request = (struct uverbs_request){0};
    ask_about(id, UVERBS_CM_REJECT, &request, &reply);
}

/* Returns 0 or errno. */
static int take(struct cm_event *to, struct cm_id *id, struct cm_id *listener,
                const struct uverbs_cm_reply *reply)
{
    fill(to, id, reply);
    set_addresses(id, &reply->state);
    switch (to->event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        return take_request(to, id, listener, reply);
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        return use_device(id);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        set_path(id, &reply->state.path);
        return 0;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        take_response(to, id);
        return 0;
    case RDMA_CM_EVENT_REJECTED:
        modify_to_error(id);
        return 0;
    default:
        return 0;
    }
}

/* ---- taking events --------------------------------------------------------------------------- */

/* Waits for the announcement of an event, unless the program has made the file non-blocking.
 * Returns what `read` does; 0: the channel is destroyed, or the NICs have ended. */
static ssize_t await_announcement(const struct cm_channel *of)
{
    char announcement;
    ssize_t got = read(of->channel.fd, &announcement, sizeof announcement);
    if (got < 0 && errno == EAGAIN) {
        wait_after_not_yet(of, of->events);
        got = read(of->channel.fd, &announcement, sizeof announcement);
    }
    looks_elsewhere |= got > 0;
    return got;
}

/* A thread that waits at a channel which another one destroys waits for ever, as on Linux. */
static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* Of identifiers that are destroyed there are none. NULL, with errno: there is none now. */
static struct cm_event *next_event(uint32_t channel)
{
    struct uverbs_request request = {.command = UVERBS_CM_GET_EVENT, .handle = channel};
    struct uverbs_reply reply;
    int error = ask(&request, NULL, 0, &reply);
    if (error) {
        errno = error;
        return NULL;
    }
    struct cm_event *made = calloc(1, sizeof *made);
    struct cm_id *listener = reply.cm.event.listener ? id_of(reply.cm.event.listener) : NULL;
    struct cm_id *id =
        listener ? id_of_request(listener, reply.cm.event.id) : id_of(reply.cm.event.id);
    error = made && id ? take(made, id, listener, &reply.cm) : ENOMEM;
    if (!error) {
        made->of = listener ? listener : id;
        count_event(&made->of->events);
        return made;
    }
    free(made);
    errno = error;
    return NULL;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    struct cm_channel *own = (struct cm_channel *)channel;
    struct cm_event *made;
    is_active();
    do { /* another thread may have got the event */
        ssize_t got = await_announcement(own);
        if (got < 0)
            return -1;
        made = next_event(own->handle);
        if (!made && got == 0 && errno == EINVAL)
            wait_for_ever();
    } while (!made && errno == EAGAIN);
    if (made)
        count_event(&own->events);
    *event = made ? &made->event : NULL;
    return made ? 0 : -1;
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    struct cm_event *own = (struct cm_event *)event;
    struct cm_id *of = own->of;
    free(own);
    acknowledge(&of->acknowledged, 1);
    return 0;
}

int finish(struct cm_id *own)
{
    struct rdma_cm_id *id = &own->id;
    if (!own->is_sync)
        return 0;
    if (id->event)
        rdma_ack_cm_event(id->event);
    id->event = NULL;
    if (rdma_get_cm_event(id->channel, &id->event) != 0)
        return -1;
    if (!id->event->status)
        return 0;
    errno = id->event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : abs(id->event->status);
    return -1;
}

EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
        [RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
        [RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
        [RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
        [RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
        [RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
        [RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
        [RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
        [RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
        [RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
        [RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
        [RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
        [RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
        [RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
        [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };
    return (size_t)event < sizeof names / sizeof *names ? names[event] : "UNKNOWN EVENT";
}
