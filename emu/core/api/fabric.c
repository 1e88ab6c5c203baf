#include "api/fabric.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/prefetch.h"
#include "nic/nic_port.h"
#include "observe/counters.h"

enum {
    END_BACKLOG_FRAMES = 1000,     /* like a network interface's txqueuelen */
    PORTS_BEYOND_THE_CACHE = 1500, /* fewer are in the cache, and fetching ahead only takes time */
};

static_assert((int)FABRIC_PARTS_MAX == (int)PARTS_MAX, "the public limit is the core's");

/* ---- cable ends ------------------------------------------------------------ */

static void end_receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct fabric *fabric = port->owner;
    if (fabric->emit)
        fabric->emit(fabric->driver, port, frame, now);
    else
        frame_free(port->pool, frame);
}

static void end_departed(struct port *port, const struct frame *frame, picoseconds start)
{
    struct fabric *fabric = port->owner;
    if (fabric->departed)
        fabric->departed(fabric->driver, port, frame, start);
}

static const struct port_handler end_handler = {.receive = end_receive, .departed = end_departed};

static struct cable_end *end_of(struct port *port)
{
    return port->handler == &end_handler ? container_of(port, struct cable_end, port) : NULL;
}

bool fabric_add_socket(struct fabric *fabric, uint32_t index, const struct port_config *config)
{
    struct cable_end *end = arena_take(&fabric->arena, 1, sizeof *end);
    if (!end)
        return false;
    struct part *part = &fabric->parts[0].part;
    if (!port_init(&end->port, &fabric->arena, &part->clock, &part->pool, &end_handler, fabric,
                   config))
        return false;
    end->port.index = index;
    end->port.outside = true;
    fabric->ports[index] = &end->port;
    fabric->ends[fabric->end_count++] = end;
    return true;
}

bool fabric_add_stand_in(struct fabric *fabric, uint32_t index, const struct port_config *config,
                         bool cut_through)
{
    if (!fabric_add_socket(fabric, index, config))
        return false;
    struct cable_end *end = fabric->ends[fabric->end_count - 1];
    end->port.stands_in = true;
    end->cut_through = cut_through;
    return true;
}

/* Frames leave for it by mail, and those from it arrive on its line. */
static const struct port_handler far_handler = {0};

static bool is_far(const struct port *port)
{
    return port->handler == &far_handler;
}

bool fabric_add_far_port(struct fabric *fabric, uint32_t part, uint32_t index,
                         const struct port_config *config, bool cut_through)
{
    struct cable_end *end = arena_take(&fabric->arena, 1, sizeof *end);
    if (!end)
        return false;
    struct part *home = &fabric->parts[part].part;
    if (!port_init(&end->port, &fabric->arena, &home->clock, &home->pool, &far_handler, fabric,
                   config))
        return false;
    end->port.index = index;
    end->cut_through = cut_through;
    fabric->ports[index] = &end->port;
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
    uint32_t room = port->pool->large.room;
    if (length > room) {
        refuse_oversize(port->line.far, room, kind, bytes, length);
        return false;
    }
    struct cable_end *end = end_of(port);
    if (end && port->line.in_flight_count >= END_BACKLOG_FRAMES) {
        end->backlog_discard++;
        return false;
    }
    struct frame *frame = frame_new(port->pool, kind, length);
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
    return fabric_input(fabric, index, kind, bytes, length, fabric_now(fabric));
}

/* ---- switches ---------------------------------------------------------------- */

struct fabric_switch *fabric_add_switch(struct fabric *fabric, uint32_t part, uint32_t first_index,
                                        const struct switch_config *config,
                                        const struct switch_port_config *ports)
{
    struct fabric_part *home = &fabric->parts[part];
    struct fabric_switch *sw = arena_take(&fabric->arena, 1, sizeof *sw);
    if (!sw || !switch_init(sw, &fabric->arena, &home->part.clock, &home->part.pool, config, ports))
        return NULL;
    for (uint32_t number = 1; number <= config->ports; number++) {
        struct switch_port *own = switch_port(sw, number);
        own->port.index = first_index + number - 1;
        fabric->ports[own->port.index] = &own->port;
    }
    sw->lossless_dropped = &home->lossless_dropped;
    fabric->switches[fabric->switch_count++] = sw;
    return sw;
}

/* ---- NICs ---------------------------------------------------------------------- */

struct nic *fabric_add_nic(struct fabric *fabric, uint32_t part, uint32_t index,
                           const struct nic_config *config)
{
    struct part *home = &fabric->parts[part].part;
    struct nic *nic = arena_take(&fabric->arena, 1, sizeof *nic);
    if (!nic || !nic_init(nic, &fabric->arena, &home->clock, &home->pool, &fabric->rng, config))
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
    if (to->stands_in || is_far(to))
        return container_of(to, struct cable_end, port)->cut_through ? DELIVER_HEAD : DELIVER_TAIL;
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
    a->line.leaves = b->stands_in;
    b->line.leaves = a->stands_in;
}

/* ---- the fabric -------------------------------------------------------------------- */

static bool take_port_tables(struct fabric *fabric)
{
    struct arena *arena = &fabric->arena;
    fabric->ports = arena_take(arena, fabric->port_count, sizeof *fabric->ports);
    fabric->switches = arena_take(arena, fabric->port_count, sizeof *fabric->switches);
    fabric->ends = arena_take(arena, fabric->port_count, sizeof *fabric->ends);
    fabric->nics = arena_take(arena, fabric->port_count, sizeof *fabric->nics);
    return fabric->ports && fabric->switches && fabric->ends && fabric->nics;
}

/* Every part has room for all frames: it is address space alone. */
static bool add_part(struct fabric *fabric, const struct fabric_config *config)
{
    uint32_t number = fabric->part_count++;
    struct part *part = &fabric->parts[number].part;
    fabric->part_list[number] = part;
    if (!part_init(part, number, config->parts))
        return false;
    if (config->ports >= PORTS_BEYOND_THE_CACHE)
        part->clock.prefetch = prefetch;
    return frame_pool_init(&part->pool, &fabric->arena, config->small_frames, config->large_frames,
                           config->frame_bytes) &&
           frame_pool_join(&part->pool, &fabric->arena, number, config->parts);
}

static bool add_parts(struct fabric *fabric, const struct fabric_config *config)
{
    fabric->parts = arena_take(&fabric->arena, config->parts, sizeof *fabric->parts);
    fabric->part_list = arena_take(&fabric->arena, config->parts, sizeof *fabric->part_list);
    if (!fabric->parts || !fabric->part_list)
        return false;
    for (uint32_t i = 0; i < config->parts; i++)
        if (!add_part(fabric, config))
            return false;
    fabric->own_count = config->parts;
    if (config->parts == 1)
        return true;
    fabric->windows = windows_new(fabric->part_list, 0, config->parts, config->threads);
    return fabric->windows;
}

struct fabric *fabric_new(const struct fabric_config *config)
{
    assert(config->parts >= 1 && config->parts <= PARTS_MAX && config->threads <= config->parts);
    struct fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return NULL;
    fabric->rng.state = config->seed;
    fabric->port_count = config->ports;
    fabric->deadlocks.next_look = NEVER;
    if (take_port_tables(fabric) && add_parts(fabric, config))
        return fabric;
    fabric_free(fabric);
    return NULL;
}

void fabric_free(struct fabric *fabric)
{
    windows_free(fabric->windows);
    fabric_free_packets(fabric);
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        switch_free(fabric->switches[i]);
    deadlock_watch_free(&fabric->deadlocks);
    for (uint32_t i = 0; i < fabric->part_count; i++) {
        tap_free(&fabric->parts[i].tap);
        part_free(&fabric->parts[i].part);
    }
    arena_free(&fabric->arena);
    free(fabric);
}

void fabric_prefault(struct fabric *fabric, uint32_t frames)
{
    for (uint32_t i = 0; i < fabric->part_count; i++) {
        struct fabric_part *part = &fabric->parts[i];
        frame_pool_prefault(&part->part.pool, frames);
        if (part->tap.ring)
            memset(part->tap.ring, 0, part->tap.size);
    }
    if (fabric->samples.values)
        sample_table_prefault(&fabric->samples);
}

/* The least lookahead of all cables that are cut. */
int64_t fabric_lookahead(const struct fabric *fabric)
{
    picoseconds least = NEVER;
    for (uint32_t i = 0; i < fabric->port_count; i++) {
        const struct port *port = fabric->ports[i];
        if (port && port_is_cut(port) && port_lookahead(port) < least)
            least = port_lookahead(port);
    }
    return least;
}

void fabric_start(struct fabric *fabric)
{
    picoseconds now = fabric_now(fabric);
    for (uint32_t i = 0; i < fabric->switch_count; i++)
        if (fabric_runs_node(fabric, fabric->switches[i]->ports[0].port.clock))
            switch_start(fabric->switches[i], now);
    for (uint32_t i = 0; i < fabric->nic_count; i++)
        if (fabric_runs_node(fabric, fabric->nics[i]->port.clock))
            port_start(&fabric->nics[i]->port, now);
    for (uint32_t i = 0; i < fabric->end_count; i++)
        port_start(&fabric->ends[i]->port, now);
    for (uint32_t i = 0; fabric->samples.values && i < fabric->own_count; i++)
        sampler_start(&fabric_own_part(fabric, i)->sampler, now);
    deadlock_watch_start(&fabric->deadlocks, now);
    if (fabric->windows)
        windows_set_lookahead(fabric->windows, fabric_lookahead(fabric));
}

static uint64_t run(struct fabric *fabric, picoseconds until)
{
    return fabric->windows ? windows_run(fabric->windows, until)
                           : clock_run_until(fabric_only_clock(fabric), until);
}

/* A search for deadlocks looks at all nodes, as they stand just before its time. */
uint64_t fabric_run(struct fabric *fabric, int64_t until_ps)
{
    uint64_t events = 0;
    for (picoseconds look; (look = fabric->deadlocks.next_look) <= until_ps;) {
        events += run(fabric, look - 1);
        deadlock_watch_look(&fabric->deadlocks, look);
    }
    return events + run(fabric, until_ps);
}

void fabric_run_to_event(struct fabric *fabric, int64_t until_ps, const bool *event)
{
    while (!*event && fabric_now(fabric) < until_ps) {
        picoseconds next = fabric_next_deadline(fabric);
        fabric_run(fabric, next < until_ps ? next : until_ps);
    }
}

bool fabric_captures_want_out(const struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->part_count; i++) {
        const struct tap *tap = &fabric->parts[i].tap;
        if (tap_waiting(tap) > tap->size / 8)
            return true;
    }
    return false;
}

void fabric_run_steps(struct fabric *fabric, int64_t until_ps, int64_t step_ps,
                      struct workload *workload)
{
    for (int64_t now_ps; (now_ps = fabric_now(fabric)) < until_ps;) {
        int64_t left_ps = until_ps - now_ps;
        fabric_run(fabric, now_ps + (step_ps < left_ps ? step_ps : left_ps));
        if (workload_is_finished(workload, fabric_now(fabric)) || fabric_captures_want_out(fabric))
            break;
    }
}

int64_t fabric_now(const struct fabric *fabric)
{
    return fabric_own_part(fabric, 0)->part.clock.now;
}

struct clock *fabric_clock(struct fabric *fabric, uint32_t part)
{
    return &fabric->parts[part].part.clock;
}

int64_t fabric_next_deadline(struct fabric *fabric)
{
    picoseconds next = fabric->windows ? windows_next_event(fabric->windows)
                                       : clock_next_deadline(fabric_only_clock(fabric));
    return fabric->deadlocks.next_look < next ? fabric->deadlocks.next_look : next;
}

bool fabric_out_of_memory(const struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->part_count; i++)
        if (fabric->parts[i].part.out_of_memory)
            return true;
    return false;
}

struct fabric_balance fabric_balance(const struct fabric *fabric)
{
    if (!fabric->windows)
        return (struct fabric_balance){.lookahead_ps = NEVER};
    struct windows_balance balance = windows_balance(fabric->windows);
    return (struct fabric_balance){fabric_lookahead(fabric), balance.windows,
                                   balance.busiest_events, balance.events};
}

uint64_t fabric_frames_exhausted(const struct fabric *fabric)
{
    uint64_t exhausted = 0;
    for (uint32_t i = 0; i < fabric->part_count; i++)
        exhausted += fabric->parts[i].part.pool.exhausted;
    return exhausted;
}

uint32_t fabric_frames_in_use(const struct fabric *fabric)
{
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < fabric->part_count; i++) {
        const struct frame_pool *pool = &fabric->parts[i].part.pool;
        in_use += pool->in_use - frame_pool_returned(pool, fabric->part_count);
    }
    return in_use;
}

static bool has_packets(const struct fabric *fabric)
{
    int64_t packets = fabric_frames_in_use(fabric);
    for (uint32_t i = 0; i < fabric->part_count; i++)
        packets -= fabric->parts[i].part.pool.link_in_use;
    return packets > 0;
}

enum fabric_activity fabric_activity(const struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->own_count; i++)
        if (clock_has_work(&fabric_own_part(fabric, i)->part.clock))
            return FABRIC_WORKS;
    if (has_packets(fabric))
        return FABRIC_WAITS;
    for (uint32_t i = 0; i < fabric->nic_count; i++)
        if (nic_waits_to_send(fabric->nics[i]))
            return FABRIC_WAITS;
    return FABRIC_RESTS;
}

/* ---- rests --------------------------------------------------------------------------- */

static bool has_faults(const struct fabric *fabric)
{
    for (const struct fault *fault = fabric->parts[0].faults.first; fault; fault = fault->next)
        if (fault->active)
            return true;
    return false;
}

picoseconds fabric_upkeep_period(const struct fabric *fabric)
{
    picoseconds period = 0;
    if (has_faults(fabric))
        return NEVER;
    for (uint32_t i = 0; i < fabric->port_count; i++) {
        picoseconds own = fabric->ports[i] ? port_upkeep_period(fabric->ports[i]) : 0;
        if (own)
            period = period ? common_multiple(period, own) : own;
    }
    return period ? period : NEVER;
}

void fabric_skip(struct fabric *fabric, picoseconds span)
{
    for (uint32_t i = 0; i < fabric->port_count; i++)
        if (fabric->ports[i])
            port_skip(fabric->ports[i], span);
    clock_skip(fabric_only_clock(fabric), span);
}

/* ---- faults and links ---------------------------------------------------------------- */

static struct fabric_part *part_of(const struct fabric *fabric, const struct port *port)
{
    return &fabric->parts[part_of_clock(port->clock)->number];
}

struct fault *fabric_add_fault(struct fabric *fabric, uint32_t index, uint32_t far_index,
                               const struct fault_config *config)
{
    struct port *port = fabric->ports[index], *far = fabric->ports[far_index];
    if (port->clock != far->clock)
        return NULL;
    return fault_add(&part_of(fabric, port)->faults, &fabric->arena, port, far, config);
}

bool fabric_links_changed(struct fabric *fabric, int64_t *at_ps)
{
    struct faults *faults = &fabric->parts[0].faults;
    bool changed = faults->links_changed;
    faults->links_changed = false;
    *at_ps = faults->links_changed_at;
    return changed;
}

const bool *fabric_links_changed_flag(const struct fabric *fabric)
{
    return &fabric->parts[0].faults.links_changed;
}

bool fabric_link_is_up(const struct fabric *fabric, uint32_t index)
{
    return !fabric->ports[index]->cuts;
}

/* ---- captures and samples ------------------------------------------------------------ */

bool fabric_capture(struct fabric *fabric, uint32_t index, size_t ring_bytes)
{
    struct tap *tap = &part_of(fabric, fabric->ports[index])->tap;
    if (!tap->ring && !tap_init(tap, ring_bytes, fabric->port_count))
        return false;
    fabric->ports[index]->tap = tap;
    return true;
}

void fabric_capture_end(struct fabric *fabric, uint32_t index)
{
    fabric->ports[index]->tap = NULL;
}

/* The first tap that has records, which is emptied before the next one. */
static struct tap *waiting_tap(struct fabric *fabric)
{
    uint32_t i = 0;
    while (i + 1 < fabric->part_count && !tap_waiting(&fabric->parts[i].tap))
        i++;
    return &fabric->parts[i].tap;
}

size_t fabric_captured(struct fabric *fabric, const uint8_t **bytes)
{
    return tap_pending(waiting_tap(fabric), bytes);
}

void fabric_captured_taken(struct fabric *fabric, size_t size)
{
    tap_taken(waiting_tap(fabric), size);
}

uint64_t fabric_captures_missed(const struct fabric *fabric)
{
    uint64_t missed = 0;
    for (uint32_t i = 0; i < fabric->part_count; i++)
        missed += tap_missed(&fabric->parts[i].tap);
    return missed;
}

uint64_t fabric_captures_missed_at(const struct fabric *fabric, uint32_t index)
{
    return tap_missed_at(&part_of(fabric, fabric->ports[index])->tap, index);
}

static bool add_samplers(struct fabric *fabric, picoseconds interval, uint32_t ports,
                         uint32_t flows)
{
    for (uint32_t i = 0; i < fabric->part_count; i++) {
        struct fabric_part *part = &fabric->parts[i];
        if (!sampler_init(&part->sampler, &fabric->arena, &part->part.clock, interval,
                          fabric->samples, ports, flows))
            return false;
    }
    return true;
}

bool fabric_sample(struct fabric *fabric, int64_t interval_ps, uint32_t capacity,
                   const uint32_t *indices, uint32_t ports, const uint64_t *flow_bytes,
                   const uint32_t *flow_parts, uint32_t flows)
{
    uint32_t first_flow = 1 + ports * GAUGES;
    if (!sample_table_init(&fabric->samples, &fabric->arena, capacity, first_flow + flows) ||
        !add_samplers(fabric, interval_ps, ports, flows))
        return false;
    sampler_watch_time(&fabric_own_part(fabric, 0)->sampler, 0);
    for (uint32_t i = 0; i < ports; i++) {
        struct port *port = fabric->ports[indices[i]];
        sampler_watch(&part_of(fabric, port)->sampler, 1 + i * GAUGES, port);
    }
    for (uint32_t i = 0; i < flows; i++)
        sampler_watch_count(&fabric->parts[flow_parts ? flow_parts[i] : 0].sampler, first_flow + i,
                            &flow_bytes[i]);
    return true;
}

uint32_t fabric_samples(const struct fabric *fabric, const int64_t **values,
                        const uint32_t **places, uint32_t *columns)
{
    const struct sampler *sampler = &fabric_own_part(fabric, 0)->sampler;
    *values = fabric->samples.values;
    *places = sampler->places;
    *columns = fabric->samples.columns;
    return sampler->rows;
}

void fabric_sample_now(struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->own_count; i++)
        sampler_take(&fabric_own_part(fabric, i)->sampler, fabric_now(fabric));
}

/* ---- inspection ------------------------------------------------------------------------ */

void fabric_counters(struct fabric *fabric, uint32_t index, int64_t *cells)
{
    port_counter_cells(fabric->ports[index], fabric_now(fabric), cells);
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
    return deadlock_watch_init(&fabric->deadlocks, fabric->ports, fabric->port_count, interval_ps);
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
    const struct port *port = fabric->ports[index];
    return port_needs_credit(port, vl)
               ? (uint64_t)credit_left(&port->credit->of_class[vl].tx) * CREDIT_BLOCK
               : 0;
}
