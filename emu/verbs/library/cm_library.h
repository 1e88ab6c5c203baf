/* Connections: a library that stands in for librdmacm. The connection manager is in the process of
 * the NICs; the identifiers of the program are here.
 *
 *     program ── rdma_* ──▶ cm_id.c cm_connection.c … ── connection.c ──▶ NICs   calls
 *     program ◀─ rdma_get_cm_event ─ cm_event.c ◀────── pipe, then a call ──┘   events
 *
 * Names, results, errno and events are those of librdmacm's manual pages. An identifier moves its
 * queue pair through its states, as there: INIT when it is made, RTR and RTS when it is connected.
 *
 * Left out, with EOPNOTSUPP: multicast, rsockets, port spaces other than TCP and UDP, IPv6 but for
 * "any", and paths that the program chooses itself. */
#ifndef EMU_VERBS_CM_LIBRARY_H
#define EMU_VERBS_CM_LIBRARY_H

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "library.h"

struct cm_channel {
    struct rdma_event_channel channel;
    uint32_t handle;
    uint32_t events; /* that the program got */
};

struct cm_event {
    struct rdma_cm_event event;
    struct cm_id *of; /* that cannot be destroyed before it is acknowledged */
    uint8_t private_data[UVERBS_CM_PRIVATE_BYTES];
};

struct cm_id {
    struct rdma_cm_id id;
    uint32_t handle;
    struct cm_id *next; /* of those with the same hash */
    bool is_sync;       /* its calls wait for their events; the channel is its own */
    bool reuses_address;
    uint8_t traffic_class, ack_timeout;
    uint8_t responder_resources, initiator_depth; /* of the connection */
    uint32_t events, acknowledged;                /* that the program got; of these, ended */
    struct ibv_sa_path_rec path;
    /* Of an endpoint: */
    bool makes_qps; /* for its requests, like this: */
    struct ibv_qp_init_attr qp_init_attr;
    uint8_t connect_data[UVERBS_CM_PRIVATE_BYTES];
    uint8_t connect_bytes;
};

static inline struct cm_id *own_id(struct rdma_cm_id *id)
{
    return (struct cm_id *)id;
}

/* Sets errno if there is an error. Returns 0 or -1, as functions of librdmacm do. */
static inline int result_of(int error)
{
    if (!error)
        return 0;
    errno = error;
    return -1;
}

/* ---- cm_id.c ----------------------------------------------------------------------------- */

/* A request about an identifier: sets handle and command. Returns 0 or errno. */
int ask_about(const struct cm_id *id, uint32_t command, struct uverbs_request *request,
              struct uverbs_reply *reply);
/* The identifier of a connection request that has come. NULL: there is no memory. */
struct cm_id *id_of_request(struct cm_id *listener, uint32_t handle);
struct cm_id *id_of(uint32_t handle);
/* Takes over the addresses that the NICs know. */
void set_addresses(struct cm_id *id, const struct uverbs_cm_state *state);
void set_path(struct cm_id *id, const struct uverbs_cm_path *path);
/* The host's NIC, opened once for all identifiers; NULL with errno. */
struct ibv_context *cm_device(void);
/* Ties the identifier to the NIC. Returns 0 or errno. */
int use_device(struct cm_id *id);
/* With the type of its queue pairs. */
int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
              enum rdma_port_space ps, enum ibv_qp_type qp_type);

/* ---- cm_event.c -------------------------------------------------------------------------- */

/* A call of an identifier without a channel of the program ends with its event. Returns 0 or -1. */
int finish(struct cm_id *id);

/* ---- cm_qp.c ------------------------------------------------------------------------------- */

/* The way to the other end, as queue pairs and address handles have it. */
void set_ah_attr(struct ibv_ah_attr *to, const struct uverbs_cm_path *path);
/* With at most so many outstanding READs and atomics; RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH: as
 * agreed. They return 0 or errno. */
int modify_to_rtr(struct cm_id *id, uint8_t responder_resources);
int modify_to_rts(struct cm_id *id, uint8_t initiator_depth);
void modify_to_error(struct cm_id *id);

#endif
