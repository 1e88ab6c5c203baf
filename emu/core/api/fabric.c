#include "api/fabric.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/prefetch.h"
#include "nic/nic_port.h"
#include "observe/counters.h"

enum {
    END_BACKLOG_FRAMES = 1000, /* like a network interface's txqueuelen */
    PORTS_OF_A_BIG_FABRIC = 200,
};

/* ---- cable ends ------------------------------------------------------------ */

static void end_receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct fabric *fabric = port->owner;
    if (fabric->emit)
        fabric->emit(fabric->driver, port, frame, now);
    else
        frame_free(&fabric->pool, frame);
}

static const struct port_handler end_handler = {.receive = end_receive};

static struct cable_end *end_of(struct port *port)
{
    return port->handler == &end_handler ? container_of(port, struct cable_end, port) : NULL;
}

bool fabric_add_socket(struct fabric *fabric, uint32_t index, const struct port_config *config)
{
    struct cable_end *end = arena_take(&fabric->arena, 1, sizeof *end);
    if (!end)
        return false;
    port_init(&end->port, &fabric->clock, &fabric->pool, &end_handler, fabric, config);
    end->port.index = index;
    end->port.outside = true;
    fabric->ports[index] = &end->port;
    fabric->ends[fabric->end_count++] = end;
    return true;
}

static uint8_t lane_of(uint8_t kind, const uint8_t *bytes, uint32_t length)
{
    return kind == FRAME_IB && length > 0 ? bytes[0] >> 4 : 0;
}

/* Counts a frame that is too long for the frame pool, at the port that it was on its way to. */
static void refuse_oversize(struct port *towards, uint32_t room, uint8_t kind, const uint8_t *bytes,
                            uint32_t length)
{
    struct frame frame = {.bytes = (uint8_t *)bytes,
                          .length = length,
                          .stored = (uint16_t)room,
                          .kind = kind,
                          .tc = lane_of(kind, bytes, length)};
    port_count_oversize(towards, &frame);
}

bool fabric_input(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                  uint32_t length, picoseconds now)
{
    struct port *port = fabric->ports[index];
    uint32_t room = fabric->pool.large.room;
    if (length > room) {
        refuse_oversize(port->line.far, room, kind, bytes, length);
        return false;
    }
    struct cable_end *end = end_of(port);
    if (end && port->line.in_flight_count >= END_BACKLOG_FRAMES) {
        end->backlog_discard++;
        return false;
    }
    struct frame *frame = frame_new(&fabric->pool, kind, length);
    if (!frame)
        return false;
    memcpy(frame->bytes, bytes, length);
    frame->tc = lane_of(kind, bytes, length);
    if (end && port->line.far->line.delivery == DELIVER_START) {
        /* The other process has emulated the cable: the frame is at the NIC now. */
        frame->tail_at = now;
        port_deliver(port->line.far, frame, now);
    } else {
        port_inject(port, frame, now);
    }
    return true;
}

bool fabric_inject(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                   uint32_t length)
{
    return fabric_input(fabric, index, kind, bytes, length, fabric->clock.now);
}

/* ---- switches ---------------------------------------------------------------- */

struct fabric_switch *fabric_add_switch(struct fabric *fabric, uint32_t first_index,
                                        const struct switch_config *config,
                                        const struct switch_port_config *ports)
{
    struct fabric_switch *sw = arena_take(&fabric->arena, 1, sizeof *sw);
    if (!sw || !switch_init(sw, &fabric->arena, &fabric->clock, &fabric->pool, config, ports))
        return NULL;
    for (uint32_t number = 1; number <= config->ports; number++) {
        struct switch_port *own = switch_port(sw, number);
        own->port.index = first_index + number - 1;
        fabric->ports[own->port.index] = &own->port;
    }
    sw->lossless_dropped = &fabric->lossless_dropped;
    fabric->switches[fabric->switch_count++] = sw;
    return sw;
}

/* ---- NICs ---------------------------------------------------------------------- */

struct nic *fabric_add_nic(struct fabric *fabric, uint32_t index, const struct nic_config *config)
{
    struct nic *nic = arena_take(&fabric->arena, 1, sizeof *nic);
    if (!nic || !nic_init(nic, &fabric->arena, &fabric->clock, &fabric->pool, &fabric->rng, config))
        return NULL;
    nic->port.index = index;
    fabric->ports[index] = &nic->port;
    fabric->nics[fabric->nic_count++] = nic;
    return nic;
}

static bool is_nic(const struct fabric *fabric, const struct port *port)
{
    for (uint32_t i = 0; i < fabric->nic_count; i++)
        if (&fabric->nics[i]->port == port)
            return true;
    return false;
}

/* ---- cables ---------------------------------------------------------------------- */

static enum delivery delivery_to(const struct fabric *fabric, const struct port *from,
                                 const struct port *to)
{
    if (to->outside && is_nic(fabric, from))
        return DELIVER_START;
    if (port_of_switch(to) && ((const struct fabric_switch *)to->owner)->config.cut_through)
        return DELIVER_HEAD;
    return DELIVER_TAIL;
}

void fabric_connect(struct fabric *fabric, uint32_t index_a, uint32_t index_b, uint64_t rate_bps,
                    int64_t delay_ps)
{
    struct port *a = fabric->ports[index_a], *b = fabric->ports[index_b];
    port_connect(a, b, rate_bps, delay_ps, delivery_to(fabric, a, b));
    port_connect(b, a, rate_bps, delay_ps, delivery_to(fabric, b, a));
}

/* ---- the fabric -------------------------------------------------------------------- */

struct fabric *fabric_new(uint64_t seed, uint32_t ports, uint32_t small_frames,
                          uint32_t large_frames, uint32_t frame_bytes)
{
    struct fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return NULL;
    clock_init(&fabric->clock);
    fabric->clock.prefetch = prefetch;
    fabric->rng.state = seed;
    fabric->port_count = ports;
    fabric->arena.huge_pages = ports >= PORTS_OF_A_BIG_FABRIC;
    fabric->ports = arena_take(&fabric->arena, ports, sizeof *fabric->ports);
    fabric->switches = arena_take(&fabric->arena, ports, sizeof *fabric->switches);
    fabric->ends = arena_take(&fabric->arena, ports, sizeof *fabric->ends);
    fabric->nics = arena_take(&fabric->arena, ports, sizeof *fabric->nics);
    if (!fabric->ports || !fabric->switches || !fabric->ends || !fabric->nics ||
        !frame_pool_init(&fabric->pool, &fabric->arena, small_frames, large_frames, frame_bytes)) {
        fabric_free(fabric);
        return NULL;
    }
    return fabric;
}

void fabric_free(struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        switch_free(fabric->switches[i]);
    deadlock_watch_free(&fabric->deadlocks);
    tap_free(&fabric->tap);
    arena_free(&fabric->arena);
    free(fabric);
}

void fabric_prefault(struct fabric *fabric, uint32_t frames)
{
    frame_pool_prefault(&fabric->pool, frames);
    if (fabric->sampler.values)
        sampler_prefault(&fabric->sampler);
    if (fabric->tap.ring)
        memset(fabric->tap.ring, 0, fabric->tap.size);
}

void fabric_start(struct fabric *fabric)
{
    picoseconds now = fabric->clock.now;
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        switch_start(fabric->switches[i], now);
    for (uint32_t i = 0; i < fabric->nic_count; i++)
        port_start(&fabric->nics[i]->port, now);
    for (uint32_t i = 0; i < fabric->end_count; i++)
        port_start(&fabric->ends[i]->port, now);
    if (fabric->sampler.values)
        sampler_start(&fabric->sampler, now);
    deadlock_watch_start(&fabric->deadlocks, now);
}

uint64_t fabric_run(struct fabric *fabric, int64_t until_ps)
{
    return clock_run_until(&fabric->clock, until_ps);
}

void fabric_run_to_event(struct fabric *fabric, int64_t until_ps, const bool *event)
{
    while (!*event && fabric->clock.now < until_ps) {
        picoseconds next = clock_next_deadline(&fabric->clock);
        clock_run_until(&fabric->clock, next < until_ps ? next : until_ps);
    }
}

/* Whether captures should be removed now. Seven eighths of their memory are left for a step. */
static bool captures_want_out(const struct fabric *fabric)
{
    return tap_waiting(&fabric->tap) > fabric->tap.size / 8;
}

void fabric_run_steps(struct fabric *fabric, int64_t until_ps, int64_t step_ps, const bool *event)
{
    while (!*event && fabric->clock.now < until_ps) {
        int64_t left_ps = until_ps - fabric->clock.now;
        clock_run_until(&fabric->clock,
                        fabric->clock.now + (step_ps < left_ps ? step_ps : left_ps));
        if (captures_want_out(fabric))
            break;
    }
}

int64_t fabric_now(const struct fabric *fabric)
{
    return fabric->clock.now;
}

struct clock *fabric_clock(struct fabric *fabric)
{
    return &fabric->clock;
}

int64_t fabric_next_deadline(struct fabric *fabric)
{
    return clock_next_deadline(&fabric->clock);
}

uint64_t fabric_frames_exhausted(const struct fabric *fabric)
{
    return fabric->pool.exhausted;
}

uint32_t fabric_frames_in_use(const struct fabric *fabric)
{
    return fabric->pool.in_use;
}

/* ---- faults and links ---------------------------------------------------------------- */

struct fault *fabric_add_fault(struct fabric *fabric, uint32_t index, uint32_t far_index,
                               const struct fault_config *config)
{
    return fault_add(&fabric->faults, &fabric->arena, fabric->ports[index],
                     fabric->ports[far_index], config);
}

bool fabric_links_changed(struct fabric *fabric, int64_t *at_ps)
{
    bool changed = fabric->faults.links_changed;
    fabric->faults.links_changed = false;
    *at_ps = fabric->faults.links_changed_at;
    return changed;
}

const bool *fabric_links_changed_flag(const struct fabric *fabric)
{
    return &fabric->faults.links_changed;
}

bool fabric_link_is_up(const struct fabric *fabric, uint32_t index)
{
    return !fabric->ports[index]->cuts;
}

/* ---- captures and samples ------------------------------------------------------------ */

bool fabric_capture(struct fabric *fabric, uint32_t index, size_t ring_bytes)
{
    if (!fabric->tap.ring && !tap_init(&fabric->tap, ring_bytes, fabric->port_count))
        return false;
    fabric->ports[index]->tap = &fabric->tap;
    return true;
}

void fabric_capture_end(struct fabric *fabric, uint32_t index)
{
    fabric->ports[index]->tap = NULL;
}

size_t fabric_captured(struct fabric *fabric, const uint8_t **bytes)
{
    return tap_pending(&fabric->tap, bytes);
}

void fabric_captured_taken(struct fabric *fabric, size_t size)
{
    tap_taken(&fabric->tap, size);
}

uint64_t fabric_captures_missed(const struct fabric *fabric)
{
    return tap_missed(&fabric->tap);
}

uint64_t fabric_captures_missed_at(const struct fabric *fabric, uint32_t index)
{
    return tap_missed_at(&fabric->tap, index);
}

bool fabric_sample(struct fabric *fabric, int64_t interval_ps, uint32_t capacity,
                   const uint32_t *indices, uint32_t ports, const uint64_t *flow_bytes,
                   uint32_t flows)
{
    struct sampler *sampler = &fabric->sampler;
    if (!sampler_init(sampler, &fabric->arena, &fabric->clock, interval_ps, capacity, ports,
                      flow_bytes, flows))
        return false;
    for (uint32_t i = 0; i < ports; i++)
        sampler_watch(sampler, i, fabric->ports[indices[i]]);
    return true;
}

uint32_t fabric_samples(const struct fabric *fabric, const int64_t **values,
                        const uint32_t **places, uint32_t *columns)
{
    *values = fabric->sampler.values;
    *places = fabric->sampler.places;
    *columns = fabric->sampler.columns;
    return fabric->sampler.rows;
}

void fabric_sample_now(struct fabric *fabric)
{
    sampler_take(&fabric->sampler, fabric->clock.now);
}

/* ---- inspection ------------------------------------------------------------------------ */

void fabric_counters(struct fabric *fabric, uint32_t index, int64_t *cells)
{
    port_counter_cells(fabric->ports[index], fabric->clock.now, cells);
}

uint64_t fabric_queued(const struct fabric *fabric, uint32_t index, uint8_t tc)
{
    const struct switch_port *own = port_of_switch(fabric->ports[index]);
    return own ? own->queue[tc].bytes : 0;
}

uint64_t fabric_held(const struct fabric *fabric, uint32_t index, uint8_t tc)
{
    const struct port *port = fabric->ports[index];
    const struct switch_port *own = port_of_switch(port);
    if (port_has_buffers(port))
        return port_flow_control(port)->held(port, tc);
    return own ? priority_group_held(&own->priority_group[tc]) : 0;
}

bool fabric_watch_deadlocks(struct fabric *fabric, int64_t interval_ps)
{
    return deadlock_watch_init(&fabric->deadlocks, &fabric->clock, fabric->ports,
                               fabric->port_count, interval_ps);
}

uint32_t fabric_deadlocks(const struct fabric *fabric)
{
    return fabric->deadlocks.count;
}

uint32_t fabric_deadlock(const struct fabric *fabric, uint32_t which, int64_t *found_at_ps,
                         uint8_t *priority, const uint32_t **indices)
{
    const struct deadlock *deadlock = &fabric->deadlocks.found[which];
    *found_at_ps = deadlock->found_at;
    *priority = deadlock->priority;
    *indices = deadlock->ports;
    return deadlock->length;
}

bool fabric_paused(const struct fabric *fabric, uint32_t index, uint8_t tc)
{
    return port_is_paused(fabric->ports[index], tc);
}

uint64_t fabric_credit(const struct fabric *fabric, uint32_t index, uint8_t vl)
{
    return (uint64_t)credit_left(&fabric->ports[index]->credit.of_class[vl].tx) * CREDIT_BLOCK;
}
