#include "flow_model/max_min.h"

#include <stdlib.h>
#include <string.h>

#define SLACK 1e-12 /* of a rate: the error of a few roundings */

static void *array(uint64_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static bool take_memory(struct max_min *max_min)
{
    const struct flow_network *network = max_min->network;
    uint64_t links = network->links, routes = network->routes, entries = network->first[routes];
    max_min->streams = array(routes, sizeof *max_min->streams);
    max_min->rate = array(routes, sizeof *max_min->rate);
    max_min->fresh = array(routes, sizeof *max_min->fresh);
    max_min->routes = array(routes, sizeof *max_min->routes);
    max_min->route_is_in = array(routes, sizeof *max_min->route_is_in);
    max_min->member_first = array(links + 1, sizeof *max_min->member_first);
    max_min->member_count = array(links, sizeof *max_min->member_count);
    max_min->members = array(entries, sizeof *max_min->members);
    max_min->member_place = array(entries, sizeof *max_min->member_place);
    max_min->load = array(links, sizeof *max_min->load);
    max_min->carried = array(links, sizeof *max_min->carried);
    max_min->carried_until = array(links, sizeof *max_min->carried_until);
    max_min->changed = array(links, sizeof *max_min->changed);
    max_min->is_changed = array(links, sizeof *max_min->is_changed);
    max_min->filling = array(links, sizeof *max_min->filling);
    max_min->links = array(links, sizeof *max_min->links);
    max_min->heap = array(links, sizeof *max_min->heap);
    return max_min->streams && max_min->rate && max_min->fresh && max_min->routes &&
           max_min->route_is_in && max_min->member_first && max_min->member_count &&
           max_min->members && max_min->member_place && max_min->load && max_min->carried &&
           max_min->carried_until && max_min->changed && max_min->is_changed && max_min->filling &&
           max_min->links && max_min->heap;
}

bool max_min_init(struct max_min *max_min, const struct flow_network *network)
{
    *max_min = (struct max_min){.network = network};
    if (!take_memory(max_min))
        return false;
    for (uint32_t route = 0; route < network->routes; route++)
        for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++)
            max_min->member_first[network->link[entry] + 1]++;
    for (uint32_t link = 0; link < network->links; link++)
        max_min->member_first[link + 1] += max_min->member_first[link];
    return true;
}

void max_min_free(struct max_min *max_min)
{
    free(max_min->streams);
    free(max_min->rate);
    free(max_min->fresh);
    free(max_min->routes);
    free(max_min->route_is_in);
    free(max_min->member_first);
    free(max_min->member_count);
    free(max_min->members);
    free(max_min->member_place);
    free(max_min->load);
    free(max_min->carried);
    free(max_min->carried_until);
    free(max_min->changed);
    free(max_min->is_changed);
    free(max_min->filling);
    free(max_min->links);
    free(max_min->heap);
    *max_min = (struct max_min){0};
}

/* ---- streams come and go ------------------------------------------------------ */

static void change(struct max_min *max_min, uint32_t link)
{
    if (max_min->is_changed[link])
        return;
    max_min->is_changed[link] = true;
    max_min->changed[max_min->changed_count++] = link;
}

double max_min_carried(const struct max_min *max_min, uint32_t link, picoseconds now)
{
    double time = (double)(now - max_min->carried_until[link]);
    return max_min->carried[link] + max_min->load[link] * time;
}

static void set_load(struct max_min *max_min, uint32_t link, double load, picoseconds now)
{
    max_min->carried[link] = max_min_carried(max_min, link, now);
    max_min->carried_until[link] = now;
    max_min->load[link] = load;
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

void max_min_join(struct max_min *max_min, uint32_t route, picoseconds now)
{
    const struct flow_network *network = max_min->network;
    bool is_first = max_min->streams[route]++ == 0;
    (void)now;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        change(max_min, network->link[entry]);
        if (is_first)
            add_member(max_min, network->link[entry], route, entry);
    }
}

void max_min_leave(struct max_min *max_min, uint32_t route, picoseconds now)
{
    const struct flow_network *network = max_min->network;
    bool was_last = --max_min->streams[route] == 0;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        uint32_t link = network->link[entry];
        double less = max_min->load[link] - max_min->rate[route] * network->share[entry];
        change(max_min, link);
        set_load(max_min, link, less > 0 ? less : 0, now);
        if (was_last)
            remove_member(max_min, link, entry);
    }
    if (was_last)
        max_min->rate[route] = 0;
}

/* ---- which routes a change can reach -------------------------------------------- */

static void include_link(struct max_min *max_min, uint32_t link)
{
    struct filling *filling = &max_min->filling[link];
    if (filling->is_in)
        return;
    *filling = (struct filling){.left = max_min->network->capacity[link], .is_in = true};
    max_min->links[max_min->link_count++] = link;
}

static void include_route(struct max_min *max_min, uint32_t route)
{
    const struct flow_network *network = max_min->network;
    if (max_min->route_is_in[route])
        return;
    max_min->route_is_in[route] = true;
    max_min->routes[max_min->route_count++] = route;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        uint32_t link = network->link[entry];
        include_link(max_min, link);
        max_min->filling[link].weight += max_min->streams[route] * network->share[entry];
        max_min->filling[link].open++;
        max_min->entries++;
    }
}

static void find_reached(struct max_min *max_min)
{
    max_min->route_count = max_min->link_count = 0;
    max_min->entries = 0;
    for (uint32_t i = 0; i < max_min->changed_count; i++) {
        max_min->is_changed[max_min->changed[i]] = false;
        include_link(max_min, max_min->changed[i]);
    }
    max_min->changed_count = 0;
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        uint32_t link = max_min->links[i], first = max_min->member_first[link];
        for (uint32_t j = 0; j < max_min->member_count[link]; j++)
            include_route(max_min, max_min->members[first + j].route);
    }
}

/* ---- the heap of links -------------------------------------------------------- */

static void sift_down(struct max_min *max_min, uint32_t place)
{
    struct full_link *heap = max_min->heap, moved = heap[place];
    for (uint32_t child; (child = 2 * place + 1) < max_min->heap_count; place = child) {
        if (child + 1 < max_min->heap_count && heap[child + 1].rate < heap[child].rate)
            child++;
        if (heap[child].rate >= moved.rate)
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

static void fix_rate(struct max_min *max_min, uint32_t route, double rate)
{
    const struct flow_network *network = max_min->network;
    max_min->fresh[route] = rate;
    max_min->route_is_in[route] = false;
    for (uint32_t entry = network->first[route]; entry < network->first[route + 1]; entry++) {
        struct filling *filling = &max_min->filling[network->link[entry]];
        double weight = max_min->streams[route] * network->share[entry];
        filling->left -= weight * rate;
        filling->weight -= weight;
        filling->open--;
    }
}

static void fix_rates_at(struct max_min *max_min, uint32_t link, double rate)
{
    uint32_t first = max_min->member_first[link];
    for (uint32_t i = 0; i < max_min->member_count[link]; i++) {
        uint32_t route = max_min->members[first + i].route;
        if (max_min->route_is_in[route])
            fix_rate(max_min, route, rate);
    }
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
        double rate = full_at(max_min, top.link);
        if (rate > top.rate * (1 + SLACK)) {
            max_min->heap[0].rate = rate;
            sift_down(max_min, 0);
            continue;
        }
        fix_rates_at(max_min, top.link, top.rate);
        drop_top(max_min);
    }
}

void max_min_solve(struct max_min *max_min, picoseconds now)
{
    find_reached(max_min);
    fill(max_min);
    for (uint32_t i = 0; i < max_min->link_count; i++) {
        uint32_t link = max_min->links[i];
        double load = max_min->network->capacity[link] - max_min->filling[link].left;
        set_load(max_min, link, max_min->member_count[link] ? load : 0, now);
        max_min->filling[link].is_in = false;
    }
}
