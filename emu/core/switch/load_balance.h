/* Which of several equal next hops a packet takes.
 *
 *     ECMP       by a hash over addresses and UDP ports: a flow keeps its path
 *     ECMP_QP    the same, and over the BTH's destination QP
 *     PINNED     as somebody has said for its flow; all others like ECMP
 *     FLOWLET    ECMP's, until its flow has been silent for a gap; then any, drawn anew
 *     SPRAY      each packet by itself: the one that was given the fewest bytes so far
 *     ADAPTIVE   each packet by itself: the one with the shortest queue; of equal ones
 *                the one that was given the fewest bytes
 *
 * Spraying by bytes keeps the next hops even to a packet, whatever lengths come.
 * ECMP_QP is Meta's E-ECMP (Gangidi et al., SIGCOMM'24); flowlets change path as
 * in LetFlow (Vanini et al., NSDI'17). */
#ifndef EMU_SWITCH_LOAD_BALANCE_H
#define EMU_SWITCH_LOAD_BALANCE_H

#include "sim/arena.h"
#include "sim/frame.h"
#include "sim/rng.h"
#include "switch/switch_api.h"

struct flowlet {
    picoseconds last; /* when its last packet passed */
    uint16_t port;
};

/* A flow's next hop here: its addresses' low halves and its UDP source port, and the port. */
struct pin {
    uint16_t source, destination, udp_source, port;
};

struct load_balancer {
    enum load_balance_kind kind;
    uint64_t seed; /* of hashes and draws */
    picoseconds gap;
    struct rng rng;
    struct flowlet *flowlets;
    struct pin *pins;
    uint32_t pin_count;
    uint64_t *given; /* bytes, by port number */
    uint32_t ports;
    uint64_t (*queued)(const void *owner, uint16_t port);
    const void *owner;
};

/* Set-up only. False when there is no memory. `queued` tells the depth of a port's queues. */
bool load_balance_init(struct load_balancer *balancer, struct arena *arena, uint32_t ports,
                       uint64_t (*queued)(const void *owner, uint16_t port), const void *owner);
void load_balance_free(struct load_balancer *balancer);
bool load_balance_set(struct load_balancer *balancer, enum load_balance_kind kind, uint64_t seed,
                      picoseconds gap);
bool load_balance_pin(struct load_balancer *balancer, struct pin pin);

/* The port of one of `count` next hops. */
uint16_t load_balance_choose(struct load_balancer *balancer, const struct frame *frame,
                             const uint16_t *ports, uint16_t count, picoseconds now);

/* The next hops have changed: what one was not given while it was away is not made up for. */
void load_balance_forget(struct load_balancer *balancer);

#endif
