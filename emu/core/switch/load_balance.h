/* Which of several equal next hops a packet takes.
 *
 *     ECMP       by a hash of addresses and UDP ports: a flow keeps its path
 *     ECMP_QP    the same with the destination QP of the BTH
 *     PINNED     a configured port for some flows; ECMP for the others
 *     FLOWLET    ECMP until the flow has been silent for a gap; then a random port
 *     SPRAY      for each packet the port that got the fewest bytes so far
 *     ADAPTIVE   for each packet the port with the shortest queue; of equal ones
 *                the one that got the fewest bytes
 *
 * Spraying by bytes keeps the next hops equal to within a packet, whatever the packet lengths.
 * ECMP_QP is Meta's E-ECMP (Gangidi et al., SIGCOMM'24). Flowlets change their path as in LetFlow
 * (Vanini et al., NSDI'17). */
#ifndef EMU_SWITCH_LOAD_BALANCE_H
#define EMU_SWITCH_LOAD_BALANCE_H

#include "sim/arena.h"
#include "sim/frame.h"
#include "sim/rng.h"
#include "switch/switch_config.h"

struct flowlet {
    picoseconds last; /* time of its last packet */
    uint16_t port;
};

/* The egress port of one flow, which is identified by the low 16 bits of its addresses and by its
 * UDP source port. */
struct pin {
    uint16_t source, destination, udp_source, port;
};

struct load_balancer {
    struct load_balance_config config;
    struct rng rng;
    struct flowlet *flowlets;
    struct pin *pins;
    uint32_t pin_count;
    uint64_t *given; /* bytes for each port number */
    uint32_t ports;
    uint64_t (*queued)(const void *owner, uint16_t port);
    const void *owner;
};

/* Set-up only. False when there is no memory. `queued` returns the bytes in the queues of a port.
 */
bool load_balance_init(struct load_balancer *balancer, struct arena *arena,
                       const struct load_balance_config *config, uint32_t ports,
                       uint64_t (*queued)(const void *owner, uint16_t port), const void *owner);
void load_balance_free(struct load_balancer *balancer);
bool load_balance_pin(struct load_balancer *balancer, struct pin pin);

/* One of the `count` ports. */
uint16_t load_balance_choose(struct load_balancer *balancer, const struct frame *frame,
                             const uint16_t *ports, uint16_t count, picoseconds now);

/* The next hops have changed: clears the byte counts, so that a port that comes back gets no more
 * than its share. */
void load_balance_forget(struct load_balancer *balancer);

#endif
