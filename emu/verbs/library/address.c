/* Address vectors and address handles. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

static const uint8_t ipv4_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool is_port(uint8_t port_num)
{
    if (port_num != PORT_NUMBER)
        debug("there is no port %u; the device has port %d only", port_num, PORT_NUMBER);
    return port_num == PORT_NUMBER;
}

/* By port and source GID, of which the port has one. */
static bool begins_here(const struct ibv_ah_attr *attr)
{
    bool has_gid = !attr->is_global || attr->grh.sgid_index == 0;
    if (!has_gid)
        debug("there is no GID %u; the port has GID 0 only (sgid_index)", attr->grh.sgid_index);
    return is_port(attr->port_num) && has_gid;
}

/* A GID of RoCE v2 for IPv4 ends with the address. InfiniBand's packets go by LIDs. */
int address_of(const struct ibv_ah_attr *attr, uint32_t *address)
{
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    if (!begins_here(attr))
        return EINVAL;
    if (!nics->device.is_ethernet) {
        *address = attr->dlid;
        return 0;
    }
    if (!attr->is_global || memcmp(attr->grh.dgid.raw, ipv4_mapped, sizeof ipv4_mapped) != 0) {
        debug("RoCE v2 needs a destination GID of the form ::ffff:10.0.0.1, and is_global");
        return EINVAL;
    }
    uint32_t last;
    memcpy(&last, attr->grh.dgid.raw + sizeof ipv4_mapped, sizeof last);
    *address = ntohl(last);
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct emu_ah *ah = calloc(1, sizeof *ah);
    if (!ah)
        return NULL;
    int error = address_of(attr, &ah->address);
    if (error) {
        free(ah);
        errno = error;
        return NULL;
    }
    ah->attr = *attr;
    ah->ah = (struct ibv_ah){.context = pd->context, .pd = pd};
    return &ah->ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    return 0;
}

/* On RoCE the IPv4 header ends the 40 bytes of the GRH. */
static void sender_gid(const struct ibv_grh *grh, union ibv_gid *gid)
{
    enum { IPV4_HEADER = 20, SOURCE = 12 };
    memcpy(gid->raw, ipv4_mapped, sizeof ipv4_mapped);
    memcpy(gid->raw + sizeof ipv4_mapped, (const uint8_t *)grh + IPV4_HEADER + SOURCE, 4);
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
                               struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    (void)context;
    const struct connection *nics = connection();
    *attr = (struct ibv_ah_attr){
        .dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port};
    if (!nics)
        return -1;
    if (nics->device.is_ethernet) {
        attr->sl = 0; /* the completion's is a flag (poll.c) */
        attr->is_global = 1;
        attr->grh.hop_limit = 64;
        sender_gid(grh, &attr->grh.dgid);
    }
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                            struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0)
        return NULL;
    return ibv_create_ah(pd, &attr);
}
