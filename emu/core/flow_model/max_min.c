#include "flow_model/max_min.h"

#include <math.h>
#include <stdlib.h>

#define NO_LEVEL INFINITY
#define NO_RATE (-1.0) /* less than any */
#define NO_LINK UINT32_MAX
#define NO_ENTRY UINT32_MAX
#define SLACK 1e-12    /* of a rate: the error of a few roundings */
#define ROUNDING 1e-11 /* of a rate or a link: more than the error of many roundings */
#define MOST_ROOM 0.5  /* of a link, for the reverse load */

enum {
    AHEAD = 16,         /* routes that are fetched from memory before they are needed */
    MOST_ADDITIONS = 8, /* then everything that changes can reach is worked out */
    MOST_REVISIONS = 64,
};

static void *array(uint64_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static bool take_memory(struct max_min *max_min)
{
    const struct flow_network *network = max_min->network;
    uint64_t links = network->links, routes = network->routes, entries = network->first[routes];
    max_min->route = array(routes, sizeof *max_min->route);
    max_min->routes = array(routes, sizeof *max_min->routes);
    max_min->member_first = array(links + 1, sizeof *max_min->member_first);
    max_min->member_count = array(links, sizeof *max_min->member_count);
    max_min->members = array(entries, sizeof *max_min->members);
    max_min->member_place = array(entries, sizeof *max_min->member_place);
    max_min->crossing = array(entries, sizeof *max_min->crossing);
    max_min->level = array(links, sizeof *max_min->level);
    max_min->load = array(links, sizeof *max_min->load);
    max_min->reverse_load = array(links, sizeof *max_min->reverse_load);
    max_min->room = array(links, sizeof *max_min->room);
    max_min->carried = array(links, sizeof *max_min->carried);
    max_min->carried_until = array(links, sizeof *max_min->carried_until);
    max_min->changed = array(links, sizeof *max_min->changed);
    max_min->is_changed = array(links, sizeof *max_min->is_changed);
    max_min->links = array(links, sizeof *max_min->links);
    max_min->filling = array(links, sizeof *max_min->filling);
    max_min->heap = array(links, sizeof *max_min->heap);
    max_min->revised = array(links, sizeof *max_min->revised);
    return max_min->route && max_min->routes && max_min->member_first && max_min->member_count &&
           max_min->members && max_min->member_place && max_min->crossing && max_min->level &&
           max_min->load && max_min->reverse_load && max_min->room && max_min->carried &&
           max_min->carried_until && max_min->changed && max_min->is_changed && max_min->links &&
           max_min->filling && max_min->heap && max_min->revised;
}

bool max_min_init(struct max_min *max_min, const struct flow_network *network, double slack)
{
    *max_min = (struct max_min){.network = network, .slack = slack};
    if (!take_memory(max_min))
        return false;
    for (uint32_t route = 0; route < network->routes; route++) {
        max_min->route[route].holder = NO_LINK;
        for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
            max_min->member_first[network->link[entry] + 1]++;
            max_min->crossing[entry].route = route;
        }
    }
    for (uint32_t link = 0; link < network->links; link++) {
        max_min->member_first[link + 1] += max_min->member_first[link];
        max_min->level[link] = NO_LEVEL;
    }
    return true;
}

void max_min_free(struct max_min *max_min)
{
    free(max_min->route);
    free(max_min->routes);
    free(max_min->member_first);
    free(max_min->member_count);
    free(max_min->members);
    free(max_min->member_place);
    free(max_min->crossing);
    free(max_min->level);
    free(max_min->load);
    free(max_min->reverse_load);
    free(max_min->room);
    free(max_min->carried);
    free(max_min->carried_until);
    free(max_min->changed);
    free(max_min->is_changed);
    free(max_min->links);
    free(max_min->filling);
    free(max_min->heap);
    free(max_min->revised);
    *max_min = (struct max_min){0};
}

/* ---- what links carry ----------------------------------------------------------- */

double max_min_carried(const struct max_min *max_min, uint32_t link, picoseconds now)
{
    double time = (double)(now - max_min->carried_until[link]);
    return max_min->carried[link] + (max_min->load[link] + max_min->reverse_load[link]) * time;
}

/* Brings the count of a link up to date, before its load changes. */
static void count_carried(struct max_min *max_min, uint32_t link, picoseconds now)
{
    if (max_min->carried_until[link] == now)
        return;
    max_min->carried[link] = max_min_carried(max_min, link, now);
    max_min->carried_until[link] = now;
}

static void set_load(struct max_min *max_min, uint32_t link, double load, picoseconds now)
{
    count_carried(max_min, link, now);
    max_min->load[link] = load > 0 ? load : 0;
}

/* The streams of a route have together so much more than before. */
static void add_reverse_load(struct max_min *max_min, uint32_t route, double more, picoseconds now)
{
    const struct flow_network *network = max_min->network;
    for (uint32_t i = network->reverse_first[route]; i < network->reverse_first[route + 1]; i++) {
        uint32_t link = network->reverse_link[i];
        double reverse_load = max_min->reverse_load[link] + more * network->reverse_share[i];
        count_carried(max_min, link, now);
        max_min->reverse_load[link] = reverse_load > 0 ? reverse_load : 0;
        if (max_min->filling[link].is_revised)
            continue;
        max_min->filling[link].is_revised = true;
        max_min->revised[max_min->revised_count++] = link;
    }
}

/* ---- streams come and go ------------------------------------------------------ */

static void change(struct max_min *max_min, uint32_t link)
{
    if (max_min->is_changed[link])
        return;
    max_min->is_changed[link] = true;
    max_min->changed[max_min->changed_count++] = link;
}

static void add_member(struct max_min *max_min, uint32_t link, uint32_t route, uint32_t entry)
{
    uint32_t place = max_min->member_first[link] + max_min->member_count[link]++;
    max_min->members[place] = (struct member){route, entry};
    max_min->member_place[entry] = place;
}

static void remove_member(struct max_min *max_min, uint32_t link, uint32_t entry)
{
    uint32_t last = max_min->member_first[link] + --max_min->member_count[link];
    uint32_t place = max_min->member_place[entry];
    struct member moved = max_min->members[last];
    max_min->members[place] = moved;
    max_min->member_place[moved.entry] = place;
}

static void include_route(struct max_min *max_min, uint32_t route)
{
    if (max_min->route[route].state != ROUTE_STAYS)
        return;
    max_min->route[route].state = ROUTE_OPEN;
    max_min->routes[max_min->route_count++] = route;
}

/* Until the solution, the new stream counts as if it had what the others of its route have. */
void max_min_join(struct max_min *max_min, uint32_t route, picoseconds now)
{
    const struct flow_network *network = max_min->network;
    struct route *own = &max_min->route[route];
    bool is_first = own->streams++ == 0;
    if (max_min->is_over)
        max_min->route_count = 0;
    max_min->is_over = false;
    include_route(max_min, route);
    max_min->active += is_first;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        uint32_t link = network->link[entry];
        change(max_min, link);
        set_load(max_min, link, max_min->load[link] + own->rate * network->share[entry], now);
        if (is_first)
            add_member(max_min, link, route, entry);
    }
    add_reverse_load(max_min, route, own->rate, now);
}

void max_min_leave(struct max_min *max_min, uint32_t route, picoseconds now)
{
    const struct flow_network *network = max_min->network;
    struct route *own = &max_min->route[route];
    bool was_last = --own->streams == 0;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        uint32_t link = network->link[entry];
        change(max_min, link);
        set_load(max_min, link, max_min->load[link] - own->rate * network->share[entry], now);
        if (was_last)
            remove_member(max_min, link, entry);
    }
    add_reverse_load(max_min, route, -own->rate, now);
    if (!was_last)
        return;
    own->rate = 0;
    own->holder = NO_LINK;
    max_min->active--;
}

/* ---- which routes are in a solution ---------------------------------------------- */

/* A link without any of the routes of the solution. */
static void empty_link(struct max_min *max_min, uint32_t link)
{
    double capacity = max_min->network->capacity[link];
    struct filling *filling = &max_min->filling[link];
    filling->left = capacity - max_min->room[link] - max_min->load[link];
    filling->weight = filling->highest = 0;
    filling->level = NO_LEVEL;
    filling->open = filling->free = 0;
    filling->first = NO_ENTRY;
}

static void include_link(struct max_min *max_min, uint32_t link)
{
    if (max_min->filling[link].is_in)
        return;
    max_min->filling[link].is_in = true;
    max_min->links[max_min->link_count++] = link;
    empty_link(max_min, link);
}

/* Includes the routes on a link that it holds, and those that have more than `rate`. */
static void include_members(struct max_min *max_min, uint32_t link, double rate)
{
    uint32_t first = max_min->member_first[link];
    if (max_min->filling[link].free == max_min->member_count[link])
        return;
    for (uint32_t i = 0; i < max_min->member_count[link]; i++) {
        uint32_t route = max_min->members[first + i].route;
        const struct route *own = &max_min->route[route];
        if (own->holder == link || own->rate > rate)
            include_route(max_min, route);
    }
}

static void include_changed(struct max_min *max_min)
{
    for (uint32_t i = 0; i < max_min->changed_count; i++) {
        uint32_t link = max_min->changed[i];
        max_min->is_changed[link] = false;
        include_link(max_min, link);
        if (max_min->level[link] < NO_LEVEL)
            include_members(max_min, link, NO_LEVEL);
    }
    max_min->changed_count = 0;
}

/* Includes all that the routes of the solution can reach. */
static void include_reached(struct max_min *max_min)
{
    const struct flow_network *network = max_min->network;
    uint32_t done = 0;
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        include_members(max_min, max_min->links[i], NO_RATE);
        for (; done < max_min->route_count; done++) {
            uint32_t route = max_min->routes[done];
            for (uint32_t j = network->first[route]; j < network->first[route + 1]; j++)
                include_link(max_min, network->link[j]);
        }
    }
}

/* Memory is faster when it is read in order. */
static void sort_routes(struct max_min *max_min)
{
    uint32_t routes = max_min->network->routes;
    if (max_min->route_count < routes / 4)
        return;
    max_min->route_count = 0;
    for (uint32_t route = 0; route < routes; route++)
        if (max_min->route[route].state != ROUTE_STAYS)
            max_min->routes[max_min->route_count++] = route;
}

static void open_route(struct max_min *max_min, uint32_t route)
{
    const struct flow_network *network = max_min->network;
    struct route *own = &max_min->route[route];
    own->state = ROUTE_OPEN;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        uint32_t link = network->link[entry];
        struct filling *filling = &max_min->filling[link];
        double weight = own->streams * network->share[entry];
        include_link(max_min, link);
        filling->left += weight * own->rate;
        filling->weight += weight;
        filling->open++;
        filling->free++;
        max_min->crossing[entry].next = filling->first;
        filling->first = entry;
        max_min->entries++;
    }
}

/* Gives links what the routes that stay leave of them. */
static void open_routes(struct max_min *max_min)
{
    for (uint32_t i = 0; i < max_min->link_count; i++)
        empty_link(max_min, max_min->links[i]);
    sort_routes(max_min);
    for (uint32_t i = 0; i < max_min->route_count; i++)
        open_route(max_min, max_min->routes[i]);
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        uint32_t link = max_min->links[i];
        if (max_min->filling[link].free == max_min->member_count[link])
            max_min->filling[link].left = max_min->network->capacity[link] - max_min->room[link];
    }
}

/* ---- the heap of links -------------------------------------------------------- */

static void sift_down(struct max_min *max_min, uint32_t place)
{
    struct full_link *heap = max_min->heap, moved = heap[place];
    for (uint32_t child; (child = 2 * place + 1) < max_min->heap_count; place = child) {
        if (child + 1 < max_min->heap_count && heap[child + 1].level < heap[child].level)
            child++;
        if (heap[child].level >= moved.level)
            break;
        heap[place] = heap[child];
    }
    heap[place] = moved;
}

static double full_at(const struct max_min *max_min, uint32_t link)
{
    const struct filling *filling = &max_min->filling[link];
    return filling->left > 0 ? filling->left / filling->weight : 0;
}

static void fill_heap(struct max_min *max_min)
{
    max_min->heap_count = 0;
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        uint32_t link = max_min->links[i];
        if (max_min->filling[link].open)
            max_min->heap[max_min->heap_count++] = (struct full_link){full_at(max_min, link), link};
    }
    for (uint32_t place = max_min->heap_count / 2; place-- > 0;)
        sift_down(max_min, place);
}

static void drop_top(struct max_min *max_min)
{
    max_min->heap[0] = max_min->heap[--max_min->heap_count];
    if (max_min->heap_count)
        sift_down(max_min, 0);
}

/* ---- filling -------------------------------------------------------------------- */

static void stop_route(struct max_min *max_min, uint32_t route, double level, uint32_t holder)
{
    const struct flow_network *network = max_min->network;
    struct route *own = &max_min->route[route];
    own->new_rate = level;
    own->new_holder = holder;
    own->state = ROUTE_FILLED;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        struct filling *filling = &max_min->filling[network->link[entry]];
        double weight = own->streams * network->share[entry];
        filling->left -= weight * level;
        filling->weight -= weight;
        filling->highest = level;
        filling->open--;
    }
}

static void stop_if_open(struct max_min *max_min, uint32_t route, double level, uint32_t holder)
{
    if (max_min->route[route].state == ROUTE_OPEN)
        stop_route(max_min, route, level, holder);
}

/* Fetches what stop_route reads of a route into the cache. */
static void prefetch(const struct max_min *max_min, struct member member)
{
    const struct flow_network *network = max_min->network;
    __builtin_prefetch(&max_min->route[member.route], 1);
    __builtin_prefetch(&network->first[member.route]);
    __builtin_prefetch(&network->link[member.entry]);
    __builtin_prefetch(&network->share[member.entry]);
}

static void stop_members(struct max_min *max_min, uint32_t link, double level)
{
    uint32_t count = max_min->member_count[link];
    const struct member *members = max_min->members + max_min->member_first[link];
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            prefetch(max_min, members[i + AHEAD]);
        stop_if_open(max_min, members[i].route, level, link);
    }
}

static void stop_routes_at(struct max_min *max_min, uint32_t link, double level)
{
    struct filling *filling = &max_min->filling[link];
    filling->level = level;
    if (filling->free > max_min->member_count[link] / 4) {
        stop_members(max_min, link, level);
        return;
    }
    for (uint32_t entry = filling->first; entry != NO_ENTRY; entry = max_min->crossing[entry].next)
        stop_if_open(max_min, max_min->crossing[entry].route, level, link);
}

/* A link is full later than it was when it came into the heap if routes that cross it have been
 * stopped elsewhere, never earlier. */
static void fill(struct max_min *max_min)
{
    fill_heap(max_min);
    while (max_min->heap_count) {
        struct full_link top = max_min->heap[0];
        if (max_min->filling[top.link].open == 0) {
            drop_top(max_min);
            continue;
        }
        double level = full_at(max_min, top.link);
        if (level > top.level * (1 + SLACK)) {
            max_min->heap[0].level = level;
            sift_down(max_min, 0);
            continue;
        }
        stop_routes_at(max_min, top.link, top.level);
        drop_top(max_min);
    }
}

/* ---- whether the routes that stay may stay --------------------------------------- */

static bool is_full(const struct max_min *max_min, uint32_t link)
{
    return max_min->filling[link].left <= ROUNDING * max_min->network->capacity[link];
}

/* Includes the routes on a link that may not stay. */
static void include_wrong(struct max_min *max_min, uint32_t link)
{
    const struct filling *filling = &max_min->filling[link];
    double level = max_min->level[link];
    if (filling->free == max_min->member_count[link])
        return;
    if (filling->left < -ROUNDING * max_min->network->capacity[link])
        include_members(max_min, link, NO_RATE);
    else if (filling->level < level * (1 - ROUNDING))
        include_members(max_min, link, filling->level * (1 + ROUNDING));
    else if (level < NO_LEVEL && (filling->highest > level * (1 + ROUNDING) ||
                                  (filling->level == NO_LEVEL && !is_full(max_min, link))))
        include_members(max_min, link, NO_LEVEL);
}

static bool some_are_wrong(struct max_min *max_min)
{
    uint32_t before = max_min->route_count;
    for (uint32_t i = 0; i < max_min->link_count; i++)
        include_wrong(max_min, max_min->links[i]);
    return max_min->route_count > before;
}

static void fill_until_right(struct max_min *max_min)
{
    open_routes(max_min);
    fill(max_min);
    for (uint32_t additions = 0; some_are_wrong(max_min); additions++) {
        if (additions == MOST_ADDITIONS || max_min->route_count > max_min->active / 2)
            include_reached(max_min);
        open_routes(max_min);
        fill(max_min);
    }
}

/* ---- the result ------------------------------------------------------------------ */

/* The level of a link. Its old one still holds for routes that stay. */
static double level_after(const struct max_min *max_min, uint32_t link)
{
    const struct filling *filling = &max_min->filling[link];
    double level = max_min->level[link];
    if (filling->free == max_min->member_count[link])
        return filling->level;
    bool is_same =
        filling->level >= level * (1 - ROUNDING) && filling->level <= level * (1 + ROUNDING);
    if (filling->level < NO_LEVEL)
        return is_same ? level : filling->level;
    if (!is_full(max_min, link))
        return NO_LEVEL;
    return level > filling->highest ? level : filling->highest;
}

static void take_result(struct max_min *max_min, picoseconds now)
{
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        uint32_t link = max_min->links[i];
        double room = max_min->network->capacity[link] - max_min->room[link];
        max_min->level[link] = level_after(max_min, link);
        set_load(max_min, link, room - max_min->filling[link].left, now);
    }
    for (uint32_t i = 0; i < max_min->route_count; i++) {
        struct route *own = &max_min->route[max_min->routes[i]];
        double more = own->streams * (own->new_rate - own->rate);
        own->rate = own->new_rate;
        own->holder = own->new_holder;
        if (more != 0)
            add_reverse_load(max_min, max_min->routes[i], more, now);
    }
}

/* Gives a link the room for its reverse load, if that matters to its streams. Returns whether it
 * needs new rates.
 *
 * Streams that get less cause less in the other direction, and where all links are alike, that is
 * less load here. A change of the room by `more` takes about more * room / load off the load, so
 * less room will do. */
static bool revise_room(struct max_min *max_min, uint32_t link)
{
    double capacity = max_min->network->capacity[link], most = MOST_ROOM * capacity;
    double wanted = max_min->reverse_load[link] < most ? max_min->reverse_load[link] : most;
    double more = wanted - max_min->room[link], load = max_min->load[link];
    if (fabs(more) <= max_min->slack * capacity)
        return false;
    include_link(max_min, link);
    if (max_min->level[link] < NO_LEVEL) {
        max_min->room[link] += load > 0 ? more * load / (load + wanted) : more;
        include_members(max_min, link, NO_LEVEL);
        return true;
    }
    max_min->room[link] = wanted;
    if (load + wanted <= capacity * (1 + ROUNDING))
        return false;
    include_members(max_min, link, NO_RATE);
    return true;
}

static bool revise_rooms(struct max_min *max_min)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < max_min->revised_count; i++) {
        uint32_t link = max_min->revised[i];
        if (revise_room(max_min, link))
            max_min->revised[kept++] = link;
        else
            max_min->filling[link].is_revised = false;
    }
    max_min->revised_count = kept;
    return kept > 0;
}

static void finish(struct max_min *max_min)
{
    for (uint32_t i = 0; i < max_min->revised_count; i++)
        max_min->filling[max_min->revised[i]].is_revised = false;
    for (uint32_t i = 0; i < max_min->link_count; i++)
        max_min->filling[max_min->links[i]].is_in = false;
    for (uint32_t i = 0; i < max_min->route_count; i++)
        max_min->route[max_min->routes[i]].state = ROUTE_STAYS;
    max_min->revised_count = max_min->link_count = 0;
    max_min->is_over = true;
}

void max_min_solve(struct max_min *max_min, picoseconds now)
{
    if (max_min->is_over)
        max_min->route_count = 0;
    max_min->entries = 0;
    include_changed(max_min);
    uint32_t revisions = 0;
    do {
        fill_until_right(max_min);
        take_result(max_min, now);
    } while (revise_rooms(max_min) && ++revisions < MOST_REVISIONS);
    finish(max_min);
}
