#include "observe/deadlock.h"

#include <stdlib.h>
#include <string.h>

/* A port of a switch in this process, and a class there. */
struct place {
    const struct switch_port *port;
    uint8_t tc;
};

/* The switch's side of a port's far end; NULL when that is no switch. */
static const struct switch_port *far_end(const struct port *port)
{
    return port->line.far ? port_of_switch(port->line.far) : NULL;
}

static const struct port *port_of(const struct deadlock_watch *watch, struct stuck member)
{
    return watch->ports[member.index];
}

/* Whether this process runs the node of a port. */
static bool is_own(const struct deadlock_watch *watch, uint32_t index)
{
    return !watch->own || watch->own[index];
}

/* ---- packets that the far end holds, and where they wait ------------------------------------ */

/* Bytes that a frame occupies in the buffer of its ingress port. */
static uint64_t bytes_held(const struct port *in, const struct frame *frame)
{
    return port_has_buffers(in) ? port_flow_control(in)->space(frame->charge.bytes)
                                : frame->charge.bytes;
}

/* Adds the bytes of the packets that wait at a member to `waiting` of their ingress ports, or
 * subtracts them again. */
static void count_waiting(struct deadlock_watch *watch, struct stuck member, bool joins)
{
    const struct switch_port *own = port_of_switch(port_of(watch, member));
    struct fabric_switch *sw = own->port.owner;
    const struct frame *frame = own->queue[own->queue_of[member.tc]].frames.first;
    for (; frame; frame = frame->next) {
        if (frame->tc != member.tc)
            continue;
        const struct port *in = &switch_port(sw, frame->charge.in_port)->port;
        uint64_t bytes = bytes_held(in, frame);
        watch->waiting[in->index][frame->charge.tc] += joins ? bytes : -bytes;
    }
}

/* Whether a packet that came in by `in`, on its class, waits at `out`. */
static bool has_waiting_from(struct place out, struct place in)
{
    const struct frame *frame = out.port->queue[out.port->queue_of[out.tc]].frames.first;
    while (frame && (frame->tc != out.tc || frame->charge.in_port != in.port->port.number ||
                     frame->charge.tc != in.tc))
        frame = frame->next;
    return frame;
}

/* Bytes in a port's buffer that came in on a class. */
static uint64_t held_by(struct place in)
{
    const struct port *port = &in.port->port;
    return port_has_buffers(port) ? port_flow_control(port)->held(port, in.tc)
                                  : priority_group_held(&in.port->priority_group[in.tc]);
}

/* ---- ports that wait ---------------------------------------------------------------------- */

/* The first packet that waits at a port of a switch; NULL: none does. */
static const struct frame *waiting_head(const struct port *port, uint8_t tc)
{
    const struct switch_port *own = port_of_switch(port);
    return own ? own->queue[own->queue_of[tc]].frames.first : NULL;
}

/* Whether it waits for another switch. */
static bool is_candidate(const struct port *port, uint8_t tc)
{
    const struct frame *head = waiting_head(port, tc);
    return head && far_end(port) && port_flow_control(port)->is_held_back(port, tc, head->length);
}

/* The member of the set for which the member `own` waits. */
static struct stuck waits_for(const struct deadlock_watch *watch, struct stuck own)
{
    struct place in = {far_end(port_of(watch, own)), own.tc};
    const struct fabric_switch *sw = in.port->port.owner;
    for (uint32_t number = 1; number <= sw->config.ports; number++) {
        const struct switch_port *out = &sw->ports[number - 1];
        unsigned left = watch->in_set[out->port.index];
        for (; left; left &= left - 1) {
            uint8_t tc = (uint8_t)__builtin_ctz(left);
            if (has_waiting_from((struct place){out, tc}, in))
                return (struct stuck){out->port.index, tc};
        }
    }
    abort(); /* no member waits for nothing */
}

/* The same where another process may know it. */
static struct stuck successor(const struct deadlock_watch *watch, struct stuck own)
{
    if (!watch->own)
        return waits_for(watch, own);
    uint32_t place = watch->places[own.index * CLASSES + own.tc] - 1;
    return (struct stuck){place / CLASSES, place % CLASSES};
}

static bool all_is_stuck(const struct deadlock_watch *watch, struct stuck own)
{
    struct place in = {far_end(port_of(watch, own)), own.tc};
    assert(in.port); /* members are ports to other switches */
    uint64_t waiting = watch->waiting[in.port->port.index][in.tc];
    return waiting && waiting == held_by(in);
}

/* The first of a port's members. */
static struct stuck member_of(uint32_t index, unsigned classes)
{
    return (struct stuck){index, (uint8_t)__builtin_ctz(classes)};
}

static void count_all_waiting(struct deadlock_watch *watch)
{
    memset(watch->waiting, 0, watch->port_count * sizeof *watch->waiting);
    for (uint32_t index = 0; index < watch->port_count; index++)
        for (unsigned left = watch->in_set[index]; left; left &= left - 1)
            if (is_own(watch, index))
                count_waiting(watch, member_of(index, left), true);
}

/* Whether a member is at a port of this switch. Its ports have consecutive indices. */
static bool has_member(const struct deadlock_watch *watch, const struct fabric_switch *sw)
{
    const uint16_t *of_switch = &watch->in_set[sw->ports[0].port.index];
    for (uint32_t i = 0; i < sw->config.ports; i++)
        if (of_switch[i])
            return true;
    return false;
}

/* Strikes out members whose far end is no switch with members: they can still send. That needs no
 * look at the packets, and mostly nobody is left. Returns whether there are members. */
static bool strike_ends(struct deadlock_watch *watch)
{
    bool any = false, struck = false;
    for (uint32_t index = 0; index < watch->port_count; index++) {
        if (!watch->in_set[index])
            continue;
        const struct switch_port *far = far_end(watch->ports[index]);
        assert(far); /* members are ports to other switches */
        if (!has_member(watch, far->port.owner)) {
            watch->in_set[index] = 0;
            struck = true;
        }
        any |= watch->in_set[index] != 0;
    }
    return any && struck ? strike_ends(watch) : any;
}

/* Strikes out members that can still send. Returns whether there are others, and one of them. */
static bool settle_set(struct deadlock_watch *watch, struct stuck *one)
{
    bool any_left = false;
    count_all_waiting(watch);
    for (bool struck = true; struck;) {
        struck = any_left = false;
        for (uint32_t index = 0; index < watch->port_count; index++) {
            unsigned left = watch->in_set[index];
            for (; left; left &= left - 1) {
                struct stuck own = member_of(index, left);
                if (all_is_stuck(watch, own)) {
                    any_left = true;
                    *one = own;
                    continue;
                }
                watch->in_set[index] &= (uint16_t) ~(1u << own.tc);
                count_waiting(watch, own, false);
                struck = true;
            }
        }
    }
    return any_left;
}

static bool is_known(const struct deadlock_watch *watch, const struct deadlock *deadlock)
{
    for (uint32_t i = 0; i < watch->count; i++)
        if (watch->found[i].priority == deadlock->priority &&
            watch->found[i].length == deadlock->length &&
            memcmp(watch->found[i].ports, deadlock->ports,
                   deadlock->length * sizeof *deadlock->ports) == 0)
            return true;
    return false;
}

static bool is_same(struct stuck one, struct stuck other)
{
    return one.index == other.index && one.tc == other.tc;
}

/* The order that decides where the report of a loop begins. A loop may pass a port on several
 * lanes. */
static bool comes_before(struct stuck one, struct stuck other)
{
    return one.index < other.index || (one.index == other.index && one.tc < other.tc);
}

/* The loop that `from` is on, beginning with the lowest port index, and there the lowest lane. */
static void walk_round(const struct deadlock_watch *watch, struct stuck from,
                       struct deadlock *deadlock)
{
    struct stuck lowest = from, own = from;
    do {
        own = successor(watch, own);
        lowest = comes_before(own, lowest) ? own : lowest;
    } while (!is_same(own, from));
    own = lowest;
    deadlock->priority = own.tc;
    do {
        deadlock->ports[deadlock->length++] = own.index;
        own = successor(watch, own);
    } while (!is_same(own, lowest) && deadlock->length < DEADLOCK_PORTS);
}

/* Following the set leads onto a loop after at most as many steps as it has members. */
static struct stuck on_circle(const struct deadlock_watch *watch, struct stuck from)
{
    uint32_t members = 0;
    for (uint32_t index = 0; index < watch->port_count; index++)
        members += (uint32_t)__builtin_popcount(watch->in_set[index]);
    for (uint32_t step = 0; step < members; step++)
        from = successor(watch, from);
    return from;
}

static void report(struct deadlock_watch *watch, struct stuck left, picoseconds now)
{
    if (watch->count == DEADLOCKS)
        return;
    struct deadlock deadlock = {.found_at = now};
    walk_round(watch, on_circle(watch, left), &deadlock);
    if (!is_known(watch, &deadlock))
        watch->found[watch->count++] = deadlock;
}

/* Begins with all ports that are stopped on one of these classes. False when there is none. */
static bool begin_set(struct deadlock_watch *watch, uint16_t classes)
{
    bool any = false;
    for (uint32_t index = 0; index < watch->port_count; index++) {
        const struct port *port = watch->ports[index];
        watch->in_set[index] = 0;
        for (unsigned left = port ? port->stopped & classes : 0; left; left &= left - 1) {
            uint8_t tc = (uint8_t)__builtin_ctz(left);
            if (is_candidate(port, tc))
                watch->in_set[index] |= (uint16_t)(1u << tc);
        }
        any |= watch->in_set[index] != 0;
    }
    return any;
}

/* Searches these classes together: a packet may change its lane from hop to hop. */
static void look_at(struct deadlock_watch *watch, uint16_t classes, picoseconds now)
{
    struct stuck one = {0};
    if (begin_set(watch, classes) && strike_ends(watch) && settle_set(watch, &one))
        report(watch, one, now);
}

/* The priorities on which ports are stopped, and whether lanes are. */
static bool stopped_classes(const struct deadlock_watch *watch, uint16_t *priorities)
{
    uint16_t paused = 0;
    bool waits = false;
    for (uint32_t index = 0; index < watch->port_count; index++) {
        const struct port *port = watch->ports[index];
        if (!port || !is_own(watch, index))
            continue;
        if (!port_framing(port)->class_changes)
            paused |= port->stopped;
        else
            waits |= port->stopped != 0;
    }
    *priorities = paused;
    return waits;
}

void deadlock_watch_look(struct deadlock_watch *watch, picoseconds now)
{
    uint16_t paused;
    bool waits = stopped_classes(watch, &paused);
    for (unsigned left = paused; left; left &= left - 1)
        look_at(watch, (uint16_t)(left & -left), now);
    if (waits)
        look_at(watch, UINT16_MAX, now);
    watch->next_look = now + watch->interval;
}

bool deadlock_watch_init(struct deadlock_watch *watch, struct port *const *ports,
                         uint32_t port_count, picoseconds interval)
{
    watch->ports = ports;
    watch->port_count = port_count;
    watch->interval = interval;
    watch->next_look = NEVER;
    watch->in_set = calloc(port_count, sizeof *watch->in_set);
    watch->waiting = calloc(port_count, sizeof *watch->waiting);
    return watch->in_set && watch->waiting;
}

/* ---- several processes ----------------------------------------------------------------------- */

static void clear_places(struct deadlock_watch *watch)
{
    memset(watch->places, 0, (size_t)watch->port_count * CLASSES * sizeof *watch->places);
}

bool deadlock_watch_share(struct deadlock_watch *watch, bool *own)
{
    watch->own = own;
    watch->before = calloc(watch->port_count, sizeof *watch->before);
    watch->places = calloc((size_t)watch->port_count * CLASSES, sizeof *watch->places);
    return watch->before && watch->places;
}

uint32_t deadlock_watch_classes(const struct deadlock_watch *watch)
{
    uint16_t paused;
    bool waits = stopped_classes(watch, &paused);
    return paused | (uint32_t)waits << CLASSES;
}

void deadlock_watch_heads(struct deadlock_watch *watch, uint16_t classes)
{
    clear_places(watch);
    for (uint32_t index = 0; index < watch->port_count; index++) {
        const struct port *port = watch->ports[index];
        unsigned left = port && is_own(watch, index) ? port->stopped & classes : 0;
        for (; left; left &= left - 1) {
            uint8_t tc = (uint8_t)__builtin_ctz(left);
            const struct frame *head = waiting_head(port, tc);
            if (head)
                watch->places[index * CLASSES + tc] = head->length;
        }
    }
}

/* Whether a port is held back with a packet of this length, as the process that runs it reports. It
 * may stand in for a port of another process, which sends nothing: so its state may be set. */
static bool is_candidate_as_told(struct port *port, uint8_t tc, uint32_t length)
{
    port->stopped |= (uint16_t)(1u << tc);
    return port_flow_control(port)->is_held_back(port, tc, length);
}

void deadlock_watch_begin(struct deadlock_watch *watch)
{
    memset(watch->in_set, 0, watch->port_count * sizeof *watch->in_set);
    for (uint32_t index = 0; index < watch->port_count; index++) {
        struct port *port = watch->ports[index];
        if (!port || !far_end(port) || !is_own(watch, port->line.far->index))
            continue;
        for (uint8_t tc = 0; tc < CLASSES; tc++) {
            uint32_t length = watch->places[index * CLASSES + tc];
            if (length && is_candidate_as_told(port, tc, length))
                watch->in_set[index] |= (uint16_t)(1u << tc);
        }
    }
}

void deadlock_watch_count(struct deadlock_watch *watch)
{
    count_all_waiting(watch);
}

/* Whether this process knows what the far end of a member holds. */
static bool is_judged_here(const struct deadlock_watch *watch, struct stuck own)
{
    const struct port *port = port_of(watch, own);
    return port && watch->own[port->line.far->index];
}

void deadlock_watch_strike(struct deadlock_watch *watch)
{
    memcpy(watch->before, watch->in_set, watch->port_count * sizeof *watch->before);
    for (uint32_t index = 0; index < watch->port_count; index++)
        for (unsigned left = watch->before[index]; left; left &= left - 1) {
            struct stuck own = member_of(index, left);
            if (is_judged_here(watch, own) && !all_is_stuck(watch, own))
                watch->in_set[index] &= (uint16_t) ~(1u << own.tc);
        }
}

bool deadlock_watch_struck(struct deadlock_watch *watch)
{
    bool struck = false;
    for (uint32_t index = 0; index < watch->port_count; index++) {
        unsigned left = watch->before[index] & ~(unsigned)watch->in_set[index];
        struck |= left != 0;
        for (; left; left &= left - 1)
            if (is_own(watch, index))
                count_waiting(watch, member_of(index, left), false);
    }
    return struck;
}

void deadlock_watch_follow(struct deadlock_watch *watch)
{
    clear_places(watch);
    for (uint32_t index = 0; index < watch->port_count; index++)
        for (unsigned left = watch->in_set[index]; left; left &= left - 1) {
            struct stuck own = member_of(index, left);
            if (!is_judged_here(watch, own))
                continue;
            struct stuck next = waits_for(watch, own);
            watch->places[index * CLASSES + own.tc] = next.index * CLASSES + next.tc + 1;
        }
}

void deadlock_watch_report(struct deadlock_watch *watch, picoseconds now)
{
    struct stuck last = {0};
    for (uint32_t index = 0; index < watch->port_count; index++)
        for (unsigned left = watch->in_set[index]; left; left &= left - 1)
            last = member_of(index, left);
    report(watch, last, now);
}

void deadlock_watch_free(struct deadlock_watch *watch)
{
    free(watch->own);
    free(watch->before);
    free(watch->places);
    free(watch->in_set);
    free(watch->waiting);
}

void deadlock_watch_start(struct deadlock_watch *watch, picoseconds now)
{
    watch->next_look = watch->interval ? now + watch->interval : NEVER;
}
