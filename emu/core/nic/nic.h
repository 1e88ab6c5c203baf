/* An RDMA NIC: what its files share. nic_port.h has the whole. */
#ifndef EMU_NIC_NIC_H
#define EMU_NIC_NIC_H

#include "link/port.h"
#include "nic/framing.h"
#include "nic/mr.h"
#include "nic/nic_api.h"
#include "nic/nic_counters.h"
#include "nic/qp.h"
#include "nic/rx_throttle.h"
#include "sim/arena.h"
#include "sim/rng.h"

struct turns {
    struct qp *first, *last;
};

/* What every packet needs follows the port. */
struct nic {
    struct port port;
    uint16_t waiting[TRAFFIC_KINDS]; /* one bit for each class in which a queue pair waits */
    uint8_t first_class;             /* the class whose turn is first */
    const struct framing_ops *framing;
    struct qp *qps;
    uint32_t qp_count; /* places that were ever used */
    struct qp *gsi;    /* General Services; NULL: it has none */
    struct clock *clock;
    struct frame_pool *pool;
    struct rng *rng;
    struct nic_config config;
    struct arena *arena;
    struct mr_table mrs;
    struct turns turns[TRAFFIC_KINDS][CLASSES];
    picoseconds data_from; /* memory has no data for packets before */
    struct timer data_ready;
    struct rx_throttle rx_throttle;
    bool ignores_cnps;  /* a fault */
    uint64_t writes;    /* messages of other hosts into memory here */
    bool *written;      /* becomes true with the next; NULL: nobody wants to know */
    bool *link_changed; /* becomes true when the link does; NULL: likewise */
    uint32_t first_free,
        last_free; /* of the places of `qps`, longest free first: place + 1; 0: none */
    struct nic_counters counters;
};

/* A frame with room for `headers` from the BTH on and for `payload` with its pad,
 * unless the NIC elides that, and where they go; NULL when the pool is empty. */
static inline struct frame *nic_frame(struct nic *nic, uint32_t headers, uint32_t payload)
{
    const struct framing_ops *framing = nic->framing;
    uint32_t length = framing_length(framing, headers + payload);
    uint32_t stored = nic->config.elides_payload ? framing->header_bytes + headers : length;
    return frame_new_stored(nic->pool, framing->kind, length, stored);
}

static inline uint8_t *nic_frame_body(const struct nic *nic, struct frame *frame)
{
    return frame->bytes + nic->framing->header_bytes;
}

#endif
