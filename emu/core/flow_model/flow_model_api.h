/* The flow model as Python sees it: plain prototypes, which the binding reads. Times are emulated
 * picoseconds, sizes bytes, rates bytes per picosecond.
 *
 * The caller's arrays must live as long as the model. */
#ifndef EMU_FLOW_MODEL_FLOW_MODEL_API_H
#define EMU_FLOW_MODEL_FLOW_MODEL_API_H

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_NO_ROUTE = -1 }; /* the route of work */

/* Route r crosses the links of the entries first[r] to first[r + 1] - 1. The packets that its
 * streams cause in the other direction cross those from reverse_first[r] on. */
struct flow_network {
    uint32_t links, routes;
    const double *capacity;
    const uint32_t *first;
    const uint32_t *link;
    const double *share; /* of a stream's bytes, on this link */
    const uint32_t *reverse_first;
    const uint32_t *reverse_link;
    const double *reverse_share; /* bytes on this link, for each byte of a stream */
};

/* What many messages have in common. Work has no bytes. */
struct flow_shape {
    double wire_bytes;   /* with headers, as its slowest link carries them */
    int64_t size_bytes;  /* payload */
    int64_t lead_ps;     /* from its posting until it can be transferred */
    int64_t deliver_ps;  /* from the end of its transfer until it is in memory */
    int64_t complete_ps; /* from the end of its transfer until its sender knows */
    int64_t alone_ps;    /* of its transfer, without other streams */
    int64_t busy_ps;     /* of work: how long it occupies its device */
    int64_t duration_ps; /* of work: from then until it is over */
};

struct flow_of_messages {
    int32_t route;
    uint32_t queue; /* its messages are transferred one after another */
    uint32_t host, far;
    uint32_t device;
};

struct flow_operation {
    uint32_t flow, shape;
    uint32_t first_dependent, dependent_count;
    int64_t not_before_ps, not_after_ps; /* not_after_ps 0: at any time */
};

struct flow_workload {
    const struct flow_operation *operations;
    const struct flow_of_messages *flows;
    const struct flow_shape *shapes;
    const uint32_t *dependents;
    uint32_t operation_count, flow_count, queue_count, device_count;
};

enum flow_status { FLOW_PENDING, FLOW_SUCCESS, FLOW_SKIPPED };

/* What happened to an operation; a time is -1 as long as it has not happened. */
struct flow_record {
    int64_t started_ps, delivered_ps, completed_ps;
    int32_t status;
};

struct flow_progress {
    int64_t now_ps;
    int64_t bytes; /* payload of all messages that are transferred */
    uint64_t solutions, entries;
    uint32_t remaining; /* operations */
    uint32_t flows_done;
    bool finished; /* nothing is left to happen */
    bool failed;   /* there was no memory */
};

struct flow_model;

/* Changes that cost much are worked out together if none of their messages is late by more than
 * `tolerance` of its time for that. NULL when there is no memory. */
struct flow_model *flow_model_new(const struct flow_network *network,
                                  const struct flow_workload *workload, double tolerance);
void flow_model_free(struct flow_model *model);

/* Samples the bytes of all links, and of all flows if `with_flows`, every `interval_ps`, into
 * `capacity` rows; when they are full, every other row is dropped and the interval doubled. */
bool flow_model_sample(struct flow_model *model, int64_t interval_ps, uint32_t capacity,
                       bool with_flows);
/* Returns the number of rows: a time, then links, then flows. */
uint32_t flow_model_samples(const struct flow_model *model, const double **values,
                            uint32_t *columns);

void flow_model_start(struct flow_model *model);
/* Runs up to `until_ps`, but stops when it has done about `work` steps. */
void flow_model_run(struct flow_model *model, int64_t until_ps, uint64_t work);
void flow_model_look(const struct flow_model *model, struct flow_progress *progress);
const struct flow_record *flow_model_records(const struct flow_model *model);
/* The payload that each flow has transferred. */
void flow_model_flow_bytes(const struct flow_model *model, int64_t *bytes);
/* The bytes that each link has carried. */
void flow_model_link_bytes(const struct flow_model *model, double *bytes);

/* The port that a switch's hash gives to each of `count` flows (ecmp.h). `qpns`: the destination
 * queue pairs, where they are hashed too, else NULL. */
void flow_model_ecmp(uint64_t seed, const uint16_t *sources, const uint16_t *destinations,
                     const uint16_t *udp_sources, const uint32_t *qpns, uint32_t count,
                     const uint16_t *ports, uint16_t port_count, uint16_t *chosen);
/* The UDP source ports of `count` connections, from the numbers of their queue pairs. */
void flow_model_source_ports(const uint32_t *qpns, const uint32_t *remote_qpns, uint32_t count,
                             uint16_t *ports);

#endif
