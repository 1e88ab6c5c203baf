/* The device and its port: one NIC, emu_0, with one port. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

#define PORT_FILES "/sys/class/infiniband/emu_0/ports/1/"

enum { COUNTER_KHZ = 1000000 }; /* of time stamps: nanoseconds */

/* The libraries of other devices (mlx5dv, efadv) know theirs by the word behind it: the driver's
 * functions. */
static struct {
    struct ibv_device device;
    const void *driver;
} own = {.device = {.node_type = IBV_NODE_CA,
                    .transport_type = IBV_TRANSPORT_IB,
                    .name = "emu_0",
                    .dev_name = "uverbs0",
                    .dev_path = "/sys/class/infiniband_verbs/uverbs0",
                    .ibdev_path = "/sys/class/infiniband/emu_0"}};

/* The header gives the name a macro. */
#undef ibv_get_device_list
#undef ibv_query_port

/* ---- devices ------------------------------------------------------------------------------ */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    bool has_nic = connection() != NULL;
    struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));
    if (list && has_nic)
        list[0] = &own.device;
    if (count)
        *count = list && has_nic;
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *of)
{
    return of->name;
}

EXPORT int ibv_get_device_index(struct ibv_device *of)
{
    (void)of;
    return 0;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *of)
{
    (void)of;
    const struct connection *nics = connection();
    return nics ? htobe64(nics->device.guid) : 0;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *of)
{
    const struct connection *nics = connection();
    if (!nics)
        return NULL;
    struct emu_context *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->verbs.sz = sizeof made->verbs;
    made->verbs.query_port = query_port;
    made->verbs.query_device_ex = query_device_ex;
    made->verbs.create_qp_ex = create_qp_ex;
    made->verbs.create_cq_ex = create_cq_ex;
    made->verbs.create_srq_ex = create_srq_ex;
    made->verbs.query_rt_values = query_rt_values;
    refuse_the_rest(&made->verbs);
    struct ibv_context *context = &made->verbs.context;
    context->device = of;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    context->cmd_fd = -1;
    context->async_fd = nics->events_fd;
    context->num_comp_vectors = 1;
    pthread_mutex_init(&context->mutex, NULL);
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    return context;
}

/* The kernel destroys what the program has left, too. */
EXPORT int ibv_close_device(struct ibv_context *context)
{
    end_objects(context);
    free(verbs_get_ctx(context));
    return 0;
}

/* ---- what the device can do ------------------------------------------------------------------ */

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    const struct uverbs_device *nic = &nics->device;
    *attr = (struct ibv_device_attr){
        .node_guid = htobe64(nic->guid),
        .sys_image_guid = htobe64(nic->guid),
        .max_mr_size = UINT64_C(1) << 47,
        .page_size_cap = 4096,
        .max_qp = (int)nic->max_qp,
        .max_qp_wr = (int)nic->max_wr,
        .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
        .max_sge = MAX_SGE,
        .max_sge_rd = MAX_SGE,
        .max_cq = (int)nic->max_qp * 2,
        .max_cqe = (int)nic->max_cqe,
        .max_mr = (int)nic->max_mr,
        .max_pd = (int)nic->max_mr,
        .max_qp_rd_atom = (int)nic->max_rd_atomic,
        .max_res_rd_atom = (int)(nic->max_rd_atomic * nic->max_qp),
        .max_qp_init_rd_atom = (int)nic->max_rd_atomic,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_ah = 1 << 20,
        .max_srq = (int)nic->max_qp,
        .max_srq_wr = (int)nic->max_wr,
        .max_srq_sge = MAX_SGE,
        .max_pkeys = (uint16_t)nic->pkey_count,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = 1,
    };
    static_assert(sizeof attr->fw_ver == sizeof nic->firmware, "a version fits");
    memcpy(attr->fw_ver, nic->firmware, sizeof attr->fw_ver);
    return 0;
}

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size)
{
    if (input && input->comp_mask)
        return EINVAL;
    if (size < sizeof attr->orig_attr)
        return EINVAL;
    struct ibv_device_attr_ex all = {.completion_timestamp_mask = UINT64_MAX,
                                     .hca_core_clock = COUNTER_KHZ,
                                     .phys_port_cnt_ex = 1};
    int error = ibv_query_device(context, &all.orig_attr);
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof all ? size : sizeof all);
    return error;
}

/* The clock of completions' time stamps. Its count is `tv_nsec`, as other devices have it. */
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return EINVAL;
    values->raw_clock = (struct timespec){.tv_nsec = emulated_ns()};
    return 0;
}

/* ---- the port ------------------------------------------------------------------------------- */

enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu code = IBV_MTU_256;
    for (uint32_t mtu = 256; mtu < bytes && code < IBV_MTU_4096; mtu *= 2)
        code++;
    return code;
}

/* Codes of PortInfo: LinkWidthActive, and LinkSpeedActive or LinkSpeedExtActive. */
static uint8_t width_code(uint32_t lanes)
{
    return lanes == 1 ? 1 : lanes == 2 ? 16 : lanes == 4 ? 2 : lanes == 8 ? 4 : 8;
}

static uint32_t speed_code(uint64_t lane_bps)
{
    static const struct {
        uint64_t bps;
        uint32_t code;
    } speeds[] = {{2500000000, 1},   {5000000000, 2},   {10000000000, 4},   {14062500000, 16},
                  {25781250000, 32}, {53125000000, 64}, {106250000000, 128}};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (lane_bps <= speeds[i].bps)
            return speeds[i].code;
    return 256; /* XDR */
}

/* The number in a file of the port in /sys, which the lab keeps up to date; 0 where the program has
 * another /sys. */
static uint32_t port_file(const char *path)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    return got > 0 ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

/* The code of PortInfo.VLCap: 5 for lanes 0 to 14. */
static uint8_t vls_code(uint32_t vls)
{
    uint8_t code = 0;
    for (uint32_t left = vls; left; left /= 2)
        code++;
    return vls == 15 ? 5 : code;
}

static struct ibv_port_attr describe(const struct uverbs_device *nic, bool is_down)
{
    enum { POLLING = 2, DISABLED = 3, LINK_UP = 5 };
    uint32_t speed = speed_code(nic->rate_bps / nic->width);
    return (struct ibv_port_attr){
        .state = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu_code(nic->mtu),
        .gid_tbl_len = 1,
        .port_cap_flags = port_file(PORT_FILES "cap_mask"),
        .max_msg_sz = 1U << 31,
        .pkey_tbl_len = (uint16_t)nic->pkey_count,
        .lid = nic->is_ethernet ? 0 : (uint16_t)nic->address,
        .sm_lid = (uint16_t)port_file(PORT_FILES "sm_lid"),
        .lmc = (uint8_t)nic->lmc,
        .max_vl_num = vls_code(nic->vls),
        .active_width = width_code(nic->width),
        .active_speed = (uint8_t)(speed > 128 ? 128 : speed),
        .phys_state = !is_down           ? LINK_UP
                      : nic->is_ethernet ? DISABLED
                                         : POLLING,
        .link_layer = nic->is_ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
    };
}

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    (void)context;
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    if (port != PORT_NUMBER)
        return EINVAL;
    bool is_down = __atomic_load_n(&nics->session->port_is_down, __ATOMIC_ACQUIRE);
    struct ibv_port_attr all = describe(&nics->device, is_down);
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof all ? size : sizeof all);
    return 0;
}

/* For programs made with an older header, whose struct ends earlier. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    (void)context;
    const struct connection *nics = connection();
    if (!nics || port != PORT_NUMBER || index != 0) {
        errno = EINVAL;
        return -1;
    }
    memcpy(gid->raw, nics->device.gid, sizeof gid->raw);
    return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                             struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    if (flags || size < sizeof *entry ||
        ibv_query_gid(context, (uint8_t)port, (int)index, &entry->gid))
        return EINVAL;
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = nics->device.is_ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    entry->ndev_ifindex = 0;
    return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t room, uint32_t flags, size_t size)
{
    if (room == 0)
        return 0;
    int error = _ibv_query_gid_ex(context, PORT_NUMBER, 0, entries, flags, size);
    return error ? -error : 1;
}

/* 0: InfiniBand or RoCE v1; 1: RoCE v2. */
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index,
                              unsigned *type)
{
    (void)context;
    const struct connection *nics = connection();
    if (!nics || port != PORT_NUMBER || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *type = nics->device.is_ethernet;
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    const struct connection *nics = connection();
    if (!nics || port != PORT_NUMBER || index < 0 || index >= (int)nics->device.pkey_count) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(nics->device.pkeys[index]);
    return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 own;
    for (int index = 0; ibv_query_pkey(context, port, index, &own) == 0; index++)
        if (own == pkey)
            return index;
    errno = ENOENT;
    return -1;
}

EXPORT int ibv_fork_init(void)
{
    return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}
