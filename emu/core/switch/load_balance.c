#include "switch/load_balance.h"

#include <stdlib.h>
#include <string.h>

#include "switch/ecmp.h"

enum { FLOWLETS = 4096 };

bool load_balance_init(struct load_balancer *balancer, struct arena *arena,
                       const struct load_balance_config *config, uint32_t ports,
                       uint64_t (*queued)(const void *owner, uint16_t port), const void *owner)
{
    bool needs_flowlets = config->kind == LOAD_BALANCE_FLOWLET;
    *balancer = (struct load_balancer){
        .config = *config,
        .rng = {.state = config->seed},
        .ports = ports,
        .queued = queued,
        .owner = owner,
        .given = arena_take(arena, ports + 1, sizeof *balancer->given),
        .flowlets =
            needs_flowlets ? arena_take(arena, FLOWLETS, sizeof *balancer->flowlets) : NULL};
    return balancer->given && (balancer->flowlets || !needs_flowlets);
}

void load_balance_free(struct load_balancer *balancer)
{
    free(balancer->pins);
    *balancer = (struct load_balancer){0};
}

bool load_balance_pin(struct load_balancer *balancer, struct pin pin)
{
    struct pin *grown = realloc(balancer->pins, (balancer->pin_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    balancer->pins = grown;
    grown[balancer->pin_count++] = pin;
    return true;
}

void load_balance_forget(struct load_balancer *balancer)
{
    memset(balancer->given, 0, (balancer->ports + 1) * sizeof *balancer->given);
}

/* ---- a path for a flow -------------------------------------------------------- */

static bool is_among(uint16_t port, const uint16_t *ports, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

/* The pinned port of the flow; 0 when it has none. */
static uint16_t pinned(const struct load_balancer *balancer, const uint8_t *header, uint32_t length)
{
    const uint8_t *ports = udp_ports(header, length);
    if (!ports)
        return 0;
    struct pin wanted = {.source = (uint16_t)(header[14] << 8 | header[15]),
                         .destination = (uint16_t)(header[18] << 8 | header[19]),
                         .udp_source = (uint16_t)(ports[0] << 8 | ports[1])};
    for (uint32_t i = 0; i < balancer->pin_count; i++) {
        const struct pin *pin = &balancer->pins[i];
        if (pin->source == wanted.source && pin->destination == wanted.destination &&
            pin->udp_source == wanted.udp_source)
            return pin->port;
    }
    return 0;
}

static uint16_t flowlet_path(struct load_balancer *balancer, uint32_t basis, const uint16_t *ports,
                             uint16_t count, picoseconds now)
{
    struct flowlet *flowlet = &balancer->flowlets[basis % FLOWLETS];
    if (!flowlet->port)
        flowlet->port = ecmp_choose(basis, ports, count);
    else if (now - flowlet->last > balancer->config.gap_ps)
        flowlet->port = ports[rng_u32(&balancer->rng) % count];
    if (!is_among(flowlet->port, ports, count))
        flowlet->port = ecmp_choose(basis, ports, count);
    flowlet->last = now;
    return flowlet->port;
}

static uint16_t path_of_flow(struct load_balancer *balancer, const struct frame *frame,
                             const uint16_t *ports, uint16_t count, picoseconds now)
{
    const uint8_t *header = frame->bytes + frame->ip;
    uint32_t length = frame->stored - frame->ip;
    if (balancer->config.kind == LOAD_BALANCE_PINNED) {
        uint16_t port = pinned(balancer, header, length);
        if (is_among(port, ports, count))
            return port;
    }
    uint32_t basis = ecmp_basis(balancer->config.seed, header, length);
    if (balancer->config.kind == LOAD_BALANCE_ECMP_QP)
        basis = ecmp_basis_of_qp(basis, header, length);
    if (balancer->config.kind == LOAD_BALANCE_FLOWLET)
        return flowlet_path(balancer, basis, ports, count, now);
    return ecmp_choose(basis, ports, count);
}

/* ---- a path for a packet -------------------------------------------------------- */

static uint16_t path_of_packet(struct load_balancer *balancer, uint32_t bytes,
                               const uint16_t *ports, uint16_t count)
{
    bool adaptive = balancer->config.kind == LOAD_BALANCE_ADAPTIVE;
    uint64_t shortest = UINT64_MAX;
    uint16_t best = ports[0];
    for (uint16_t i = 0; i < count; i++) {
        uint64_t queued = adaptive ? balancer->queued(balancer->owner, ports[i]) : 0;
        bool better = queued < shortest ||
                      (queued == shortest && balancer->given[ports[i]] < balancer->given[best]);
        if (better) {
            shortest = queued;
            best = ports[i];
        }
    }
    balancer->given[best] += bytes;
    return best;
}

uint16_t load_balance_choose(struct load_balancer *balancer, const struct frame *frame,
                             const uint16_t *ports, uint16_t count, picoseconds now)
{
    if (balancer->config.kind == LOAD_BALANCE_SPRAY ||
        balancer->config.kind == LOAD_BALANCE_ADAPTIVE)
        return path_of_packet(balancer, frame->length, ports, count);
    return path_of_flow(balancer, frame, ports, count, now);
}
