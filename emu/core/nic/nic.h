/* An RDMA NIC: queue pairs and registered memory behind one port.
 *
 *     receive() ─▶ framing: CRCs, lengths ─▶ queue pair ─▶ completer │ responder
 *     pull()    ◀─ framing: headers, CRCs ◀─ requester │ response queue ◀─ whose turn is it
 *
 * Turns: CNPs go before acknowledgements, and these before data. Within one
 * kind the classes (priorities or VLs) take turns, within a class the queue
 * pairs, a packet at a time, and within a queue pair requests and READ responses. A class that flow
 * control stops keeps its turns.
 *
 * Where the fabric sets a NIC up: nic_init, then port_connect both ways, then
 * regions, queue pairs and their connections, then port_start. */
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
    uint16_t waiting[TRAFFIC_KINDS]; /* bit per class in which somebody waits */
    uint8_t first_class;             /* the one that is asked first */
    const struct framing_ops *framing;
    struct qp *qps;
    uint32_t qp_count;
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
    bool ignores_cnps; /* a fault */
    struct nic_counters counters;
};

/* Set-up only. False when memory is short, or a class or VID in the config does not exist. */
bool nic_init(struct nic *nic, struct arena *arena, struct clock *clock, struct frame_pool *pool,
              struct rng *rng, const struct nic_config *config);

/* For the NIC's own files: the queue pair wants to send such a packet. The
 * caller kicks the port once its own state is in order. */
void nic_queue(struct qp *qp, enum traffic traffic);

/* A frame with room for `headers` from the BTH on and for `payload` with its pad,
 * unless the NIC elides that, and where they go; NULL when the pool is empty. */
struct frame *nic_frame(struct nic *nic, uint32_t headers, uint32_t payload);

/* The NIC a port is part of; NULL when it is another's. */
const struct nic *port_of_nic(const struct port *port);

/* The queue pair that a frame seems to be for; nothing of it has been checked. May be NULL. */
const struct qp *nic_addressee(const struct nic *nic, const struct frame *frame);

static inline uint8_t *nic_frame_body(const struct nic *nic, struct frame *frame)
{
    return frame->bytes + nic->framing->header_bytes;
}

#endif
