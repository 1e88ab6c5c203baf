/* Identifiers: made, bound to addresses, destroyed. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cm_library.h"

/* ---- identifiers by handle ----------------------------------------------------------------- */

enum { BUCKETS = 1024 };

static struct cm_id *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember_id(struct cm_id *id)
{
    pthread_mutex_lock(&lock);
    id->next = buckets[id->handle % BUCKETS];
    buckets[id->handle % BUCKETS] = id;
    pthread_mutex_unlock(&lock);
}

static void forget_id(struct cm_id *id)
{
    pthread_mutex_lock(&lock);
    struct cm_id **at = &buckets[id->handle % BUCKETS];
    while (*at && *at != id)
        at = &(*at)->next;
    if (*at)
        *at = id->next;
    pthread_mutex_unlock(&lock);
}

struct cm_id *id_of(uint32_t handle)
{
    pthread_mutex_lock(&lock);
    struct cm_id *id = buckets[handle % BUCKETS];
    while (id && id->handle != handle)
        id = id->next;
    pthread_mutex_unlock(&lock);
    return id;
}

int ask_about(const struct cm_id *id, uint32_t command, struct uverbs_request *request,
              struct uverbs_reply *reply)
{
    request->command = command;
    request->handle = id->handle;
    return ask(request, NULL, 0, reply);
}

/* ---- the device ----------------------------------------------------------------------------- */

static struct ibv_context *opened;
static struct ibv_pd *opened_pd;

struct ibv_context *cm_device(void)
{
    pthread_mutex_lock(&lock);
    if (!opened) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        opened = list && list[0] ? ibv_open_device(list[0]) : NULL;
        ibv_free_device_list(list);
    }
    pthread_mutex_unlock(&lock);
    if (!opened)
        errno = ENODEV;
    return opened;
}

/* The protection domain of identifiers for which the program names none. */
static struct ibv_pd *device_pd(struct ibv_context *device)
{
    pthread_mutex_lock(&lock);
    if (!opened_pd)
        opened_pd = ibv_alloc_pd(device);
    pthread_mutex_unlock(&lock);
    return opened_pd;
}

int use_device(struct cm_id *id)
{
    struct ibv_context *device = cm_device();
    if (!device)
        return errno;
    id->id.verbs = device;
    id->id.port_num = PORT_NUMBER;
    if (!id->id.pd)
        id->id.pd = device_pd(device);
    return id->id.pd ? 0 : errno;
}

EXPORT struct ibv_context **rdma_get_devices(int *count)
{
    struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));
    if (list)
        list[0] = cm_device();
    if (count)
        *count = list && list[0];
    return list;
}

EXPORT void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

/* ---- making and destroying ------------------------------------------------------------------ */

static struct cm_id *new_id(struct rdma_event_channel *channel, void *context,
                            enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct cm_id *made = calloc(1, sizeof *made);
    if (made)
        made->id = (struct rdma_cm_id){
            .channel = channel, .context = context, .ps = ps, .qp_type = qp_type};
    return made;
}

int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
              enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct rdma_event_channel *own = channel ? channel : rdma_create_event_channel();
    struct cm_id *made = own ? new_id(own, context, ps, qp_type) : NULL;
    struct uverbs_request request = {.command = UVERBS_CM_CREATE_ID, .cm = {.port_space = ps}};
    struct uverbs_reply reply;
    int error = own ? ENOMEM : errno;
    if (made) {
        made->is_sync = !channel;
        request.cm.channel = ((struct cm_channel *)own)->handle;
        error = ask(&request, NULL, 0, &reply);
    }
    if (!made || error) {
        if (own && !channel)
            rdma_destroy_event_channel(own);
        free(made);
        return result_of(error);
    }
    made->handle = reply.handle;
    remember_id(made);
    *id = &made->id;
    return 0;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                          enum rdma_port_space ps)
{
    return create_id(channel, id, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
}

struct cm_id *id_of_request(struct cm_id *listener, uint32_t handle)
{
    const struct rdma_cm_id *from = &listener->id;
    struct cm_id *made = new_id(from->channel, from->context, from->ps, from->qp_type);
    if (!made)
        return NULL;
    made->handle = handle;
    made->traffic_class = listener->traffic_class;
    made->ack_timeout = listener->ack_timeout;
    remember_id(made);
    return made;
}

/* Until the program has acknowledged them. */
static void await_events(struct cm_id *own)
{
    if (own->id.event)
        rdma_ack_cm_event(own->id.event);
    own->id.event = NULL;
    await_acknowledgements(&own->acknowledged, &own->events);
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {0};
    struct uverbs_reply reply;
    int error = ask_about(own, UVERBS_CM_DESTROY_ID, &request, &reply);
    if (error)
        return result_of(error);
    forget_id(own);
    await_events(own);
    if (own->is_sync)
        rdma_destroy_event_channel(id->channel);
    free(own);
    return 0;
}

EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    struct cm_id *own = own_id(id);
    struct rdma_event_channel *to = channel ? channel : rdma_create_event_channel();
    if (!to)
        return -1;
    struct uverbs_request request = {.cm = {.channel = ((struct cm_channel *)to)->handle}};
    struct uverbs_reply reply;
    int error = ask_about(own, UVERBS_CM_MIGRATE_ID, &request, &reply);
    if (error) {
        if (!channel)
            rdma_destroy_event_channel(to);
        return result_of(error);
    }
    await_events(own);
    if (own->is_sync)
        rdma_destroy_event_channel(id->channel);
    own->is_sync = !channel;
    id->channel = to;
    return 0;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Takes IPv4, and of IPv6 "any" and what stands for IPv4. NULL is any. Returns 0 or errno. */
static int endpoint_of(const struct sockaddr *address, struct uverbs_cm_endpoint *to)
{
    *to = (struct uverbs_cm_endpoint){0};
    if (!address)
        return 0;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address;
        *to = (struct uverbs_cm_endpoint){ntohl(ipv4->sin_addr.s_addr), ntohs(ipv4->sin_port)};
        return 0;
    }
    if (address->sa_family != AF_INET6)
        return EAFNOSUPPORT;
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)address;
    uint32_t last;
    memcpy(&last, ipv6->sin6_addr.s6_addr + 12, sizeof last);
    if (!IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr) && !IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr))
        return unsupported("a connection by IPv6");
    *to = (struct uverbs_cm_endpoint){ntohl(last), ntohs(ipv6->sin6_port)};
    return 0;
}

static void set_address(struct sockaddr *to, const struct uverbs_cm_endpoint *from)
{
    if (to->sa_family == AF_INET6) { /* "any", as the program wrote it */
        ((struct sockaddr_in6 *)to)->sin6_port = htons((uint16_t)from->port);
        return;
    }
    *(struct sockaddr_in *)to = (struct sockaddr_in){.sin_family = AF_INET,
                                                     .sin_port = htons((uint16_t)from->port),
                                                     .sin_addr.s_addr = htonl(from->ip)};
}

void set_addresses(struct cm_id *id, const struct uverbs_cm_state *state)
{
    struct rdma_addr *addr = &id->id.route.addr;
    if (state->source.ip)
        addr->src_addr.sa_family = AF_INET;
    set_address(&addr->src_addr, &state->source);
    if (state->destination.ip)
        set_address(&addr->dst_addr, &state->destination);
    if (!state->path.mtu)
        return;
    memcpy(addr->addr.ibaddr.sgid.raw, state->path.local_gid, sizeof state->path.local_gid);
    memcpy(addr->addr.ibaddr.dgid.raw, state->path.remote_gid, sizeof state->path.remote_gid);
    addr->addr.ibaddr.pkey = htons(state->path.pkey);
}

void set_path(struct cm_id *id, const struct uverbs_cm_path *path)
{
    struct ibv_sa_path_rec *record = &id->path;
    *record = (struct ibv_sa_path_rec){.dlid = htons(path->remote_lid),
                                       .slid = htons(path->local_lid),
                                       .hop_limit = path->hop_limit,
                                       .traffic_class = path->traffic_class,
                                       .reversible = 1,
                                       .numb_path = 1,
                                       .pkey = htons(path->pkey),
                                       .sl = path->sl,
                                       .mtu_selector = 2, /* exactly */
                                       .packet_life_time_selector = 2,
                                       .packet_life_time = (uint8_t)(path->ack_timeout - 1)};
    memcpy(record->sgid.raw, path->local_gid, sizeof path->local_gid);
    memcpy(record->dgid.raw, path->remote_gid, sizeof path->remote_gid);
    record->mtu = (uint8_t)mtu_code(path->mtu);
    id->id.route.path_rec = record;
    id->id.route.num_paths = 1;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {.cm = {.reuses_address = own->reuses_address}};
    struct uverbs_reply reply;
    int error = endpoint_of(addr, &request.cm.source);
    if (!error)
        error = ask_about(own, UVERBS_CM_BIND_ADDR, &request, &reply);
    if (!error && reply.cm.state.source.ip)
        error = use_device(own);
    if (error)
        return result_of(error);
    if (addr->sa_family == AF_INET6)
        memcpy(&id->route.addr.src_addr, addr, sizeof(struct sockaddr_in6));
    set_addresses(own, &reply.cm.state);
    return 0;
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                             int timeout_ms)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {.cm = {.reuses_address = own->reuses_address}};
    struct uverbs_reply reply;
    (void)timeout_ms; /* the lab knows at once */
    int error = endpoint_of(from, &request.cm.source);
    if (!error)
        error = endpoint_of(to, &request.cm.destination);
    if (!error)
        error = ask_about(own, UVERBS_CM_RESOLVE_ADDR, &request, &reply);
    return error ? result_of(error) : finish(own);
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    struct cm_id *own = own_id(id);
    struct uverbs_request request = {
        .cm = {.traffic_class = own->traffic_class, .ack_timeout = own->ack_timeout}};
    struct uverbs_reply reply;
    (void)timeout_ms;
    int error = ask_about(own, UVERBS_CM_RESOLVE_ROUTE, &request, &reply);
    return error ? result_of(error) : finish(own);
}

static __be16 port_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                          : ((const struct sockaddr_in *)address)->sin_port;
}

EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return port_of(&id->route.addr.src_addr);
}

EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return port_of(&id->route.addr.dst_addr);
}

/* ---- options
 * -------------------------------------------------------------------------------------
 */

/* The value of an option that has one byte, or an int. */
static bool option_value(const void *value, size_t length, int *to)
{
    if (length == sizeof(uint8_t))
        *to = *(const uint8_t *)value;
    else if (length == sizeof *to)
        memcpy(to, value, sizeof *to);
    else
        return false;
    return true;
}

EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length)
{
    struct cm_id *own = own_id(id);
    int number;
    if (level != RDMA_OPTION_ID)
        return result_of(unsupported("a path that the program chooses"));
    if (!option_value(value, length, &number))
        return result_of(EINVAL);
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        own->traffic_class = (uint8_t)number;
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
        own->reuses_address = number != 0;
        return 0;
    case RDMA_OPTION_ID_AFONLY:
        return 0; /* all are of IPv4 */
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        own->ack_timeout = (uint8_t)(number & 31);
        return 0;
    default:
        return result_of(ENOSYS);
    }
}
