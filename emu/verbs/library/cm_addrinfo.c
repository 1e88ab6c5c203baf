/* Names of hosts and services, and endpoints made of them. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm_library.h"

enum { RESOLVE_MS = 2000 };

/* ---- rdma_getaddrinfo ----------------------------------------------------------------------- */

static struct addrinfo as_hints(const struct rdma_addrinfo *from)
{
    return (struct addrinfo){.ai_flags = (from->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
                                         (from->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
                             .ai_family = AF_INET,
                             .ai_socktype = SOCK_STREAM};
}

static void set_kind(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints)
{
    to->ai_flags = hints ? hints->ai_flags : 0;
    to->ai_family = AF_INET;
    to->ai_qp_type = hints ? hints->ai_qp_type : 0;
    to->ai_port_space = hints ? hints->ai_port_space : 0;
    if (!to->ai_port_space)
        to->ai_port_space = to->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    if (!to->ai_qp_type)
        to->ai_qp_type = to->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

static struct sockaddr *copy_of(const struct sockaddr *address, socklen_t length)
{
    struct sockaddr *copy = malloc(length);
    return copy ? memcpy(copy, address, length) : NULL;
}

/* Returns 0 or a code of getaddrinfo. */
static int look_up(struct rdma_addrinfo *to, const char *node, const char *service)
{
    struct addrinfo wanted = as_hints(to), *found;
    int error = getaddrinfo(node, service, &wanted, &found);
    if (error)
        return error;
    bool is_passive = to->ai_flags & RAI_PASSIVE;
    struct sockaddr **address = is_passive ? &to->ai_src_addr : &to->ai_dst_addr;
    *(is_passive ? &to->ai_src_len : &to->ai_dst_len) = found->ai_addrlen;
    *address = copy_of(found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return *address ? 0 : EAI_MEMORY;
}

/* The caller's own addresses, where there are none yet. Returns 0 or a code of getaddrinfo. */
static int take_addresses(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints)
{
    if (!to->ai_src_len && hints->ai_src_len) {
        to->ai_src_addr = copy_of(hints->ai_src_addr, hints->ai_src_len);
        to->ai_src_len = hints->ai_src_len;
    }
    if (!to->ai_dst_len && hints->ai_dst_len) {
        to->ai_dst_addr = copy_of(hints->ai_dst_addr, hints->ai_dst_len);
        to->ai_dst_len = hints->ai_dst_len;
    }
    bool has_all = (!to->ai_src_len || to->ai_src_addr) && (!to->ai_dst_len || to->ai_dst_addr);
    return has_all ? 0 : EAI_MEMORY;
}

static int find_addresses(struct rdma_addrinfo *to, const char *node, const char *service,
                          const struct rdma_addrinfo *hints)
{
    int error = node || service ? look_up(to, node, service) : 0;
    return error || !hints ? error : take_addresses(to, hints);
}

EXPORT int rdma_getaddrinfo(const char *node, const char *service,
                            const struct rdma_addrinfo *hints, struct rdma_addrinfo **result)
{
    if (!node && !service && !hints)
        return result_of(EINVAL);
    struct rdma_addrinfo *made = calloc(1, sizeof *made);
    if (!made)
        return EAI_MEMORY;
    set_kind(made, hints);
    int error = find_addresses(made, node, service, hints);
    if (error)
        rdma_freeaddrinfo(made);
    else
        *result = made;
    return error;
}

EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *list)
{
    while (list) {
        struct rdma_addrinfo *next = list->ai_next;
        free(list->ai_src_addr);
        free(list->ai_dst_addr);
        free(list);
        list = next;
    }
}

/* ---- endpoints ------------------------------------------------------------------------------ */

static int begin_passive(struct cm_id *own, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                         const struct ibv_qp_init_attr *attr)
{
    own->makes_qps = attr != NULL;
    if (attr) {
        own->qp_init_attr = *attr;
        own->qp_init_attr.qp_type = (enum ibv_qp_type)res->ai_qp_type;
    }
    int error = rdma_bind_addr(&own->id, res->ai_src_addr);
    own->id.pd = pd ? pd : own->id.pd;
    return error;
}

static int begin_active(struct cm_id *own, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                        struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id = &own->id;
    if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) != 0 ||
        rdma_resolve_route(id, RESOLVE_MS) != 0)
        return -1;
    if (res->ai_connect_len > sizeof own->connect_data)
        return result_of(EINVAL);
    if (res->ai_connect_len)
        memcpy(own->connect_data, res->ai_connect, res->ai_connect_len);
    own->connect_bytes = (uint8_t)res->ai_connect_len;
    if (!attr)
        return 0;
    attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    return rdma_create_qp(id, pd, attr);
}

EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                          struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *made;
    if (create_id(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space,
                  (enum ibv_qp_type)res->ai_qp_type) != 0)
        return -1;
    int failed = res->ai_flags & RAI_PASSIVE ? begin_passive(own_id(made), res, pd, attr)
                                             : begin_active(own_id(made), res, pd, attr);
    if (failed) {
        int error = errno;
        rdma_destroy_ep(made);
        return result_of(error);
    }
    *id = made;
    return 0;
}

EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}
