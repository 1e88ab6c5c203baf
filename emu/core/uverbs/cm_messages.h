/* The part of messages.h that is about connections: what librdmacm's calls become. Plain
 * declarations only, as in nic_api.h. Numbers are in the machine's byte order. */
#ifndef EMU_UVERBS_CM_MESSAGES_H
#define EMU_UVERBS_CM_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

/* The most that any message of communication management has room for. */
enum { UVERBS_CM_PRIVATE_BYTES = 224 };

/* IPv4. 0: any. */
struct uverbs_cm_endpoint {
    uint32_t ip;
    uint32_t port;
};

/* Of a connection, by the names of struct rdma_conn_param; of a datagram service, by those of
 * struct rdma_ud_param. */
struct uverbs_cm_param {
    uint32_t qp_num, qkey;
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count, srq;
    uint8_t is_unreliable; /* the queue pair is UC */
    uint8_t private_bytes;
    uint8_t private_data[224]; /* UVERBS_CM_PRIVATE_BYTES */
};

/* What of it counts depends on the command. */
struct uverbs_cm_request {
    uint32_t channel;
    uint32_t port_space; /* enum rdma_port_space */
    struct uverbs_cm_endpoint source, destination;
    bool reuses_address;
    uint32_t backlog;      /* of a listener; 0: as many requests as there may be */
    uint8_t traffic_class; /* of the way to the other end */
    uint8_t ack_timeout;   /* a code, as of queue pairs; 0: the usual one */
    struct uverbs_cm_param param;
};

/* The way to the other end. */
struct uverbs_cm_path {
    uint8_t local_gid[16], remote_gid[16];
    uint16_t local_lid, remote_lid, pkey;
    uint32_t mtu; /* bytes */
    uint8_t sl, traffic_class, hop_limit, ack_timeout;
};

/* An event of an identifier. */
struct uverbs_cm_event {
    uint32_t kind; /* enum rdma_cm_event_type */
    int32_t status;
    uint32_t id;
    uint32_t listener; /* of a request: whose new identifier `id` is; 0: no request */
    struct uverbs_cm_param param;
};

/* What became of an identifier. */
struct uverbs_cm_state {
    struct uverbs_cm_endpoint source, destination;
    struct uverbs_cm_path path; /* mtu 0: not known yet */
};

struct uverbs_cm_reply {
    struct uverbs_cm_event event;
    struct uverbs_cm_state state;
};

#endif
