/* The memory, sockets and interfaces of a process on the exact clock. */
#define _GNU_SOURCE /* struct mmsghdr */

#include <net/ethernet.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "driver/exact_state.h"
#include "headers/ib_encap.h"

size_t exact_memory_bytes(uint32_t cables)
{
    return exchange_bytes(cables);
}

static bool watch(const struct exact_driver *driver, int fd)
{
    struct epoll_event readable = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

struct exact_driver *exact_new(struct fabric *fabric, enum exact_side side, uint32_t cables,
                               int64_t step_ps, int wake_fd, struct exact_patience patience)
{
    struct exact_driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return NULL;
    driver->fabric = fabric;
    driver->side = side;
    driver->step = step_ps;
    driver->patience = patience;
    driver->hold = NEVER;
    driver->wake_fd = wake_fd;
    driver->marker.program_fd = -1;
    driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    driver->channels = calloc(cables + 1, sizeof *driver->channels);
    driver->channel_room = cables + 1;
    driver->cables = calloc(cables + 1, sizeof *driver->cables);
    driver->by_index = calloc(fabric->port_count, sizeof *driver->by_index);
    driver->copies = malloc(EXACT_COPIES_BYTES);
    if (driver->epoll_fd < 0 || !driver->channels || !driver->cables || !driver->by_index ||
        !driver->copies ||
        !receive_room_init(&driver->receive_room,
                           fabric_only_pool(fabric)->large.room + IB_ENCAP_BYTES) ||
        !watch(driver, wake_fd)) {
        exact_free(driver);
        return NULL;
    }
    fabric->departed = exact_departed;
    fabric->driver = driver;
    return driver;
}

void exact_free(struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->channel_count; i++)
        channel_free(driver->channels[i]);
    for (uint32_t i = 0; driver->by_index && i < driver->fabric->port_count; i++)
        free(driver->by_index[i]);
    exchange_close(&driver->exchange);
    receive_room_free(&driver->receive_room);
    if (driver->epoll_fd >= 0)
        close(driver->epoll_fd);
    free(driver->marker_ifindex);
    free(driver->copies);
    free(driver->by_index);
    free(driver->cables);
    free(driver->channels);
    free(driver);
}

int exact_add_channel(struct exact_driver *driver, int fd, uint32_t ring_frames)
{
    if (driver->channel_count == driver->channel_room)
        return -1;
    struct channel *channel =
        channel_new(fd, &driver->receive_room,
                    fabric_only_pool(driver->fabric)->large.room + IB_ENCAP_BYTES, ring_frames);
    if (!channel)
        return -1;
    if (!channel->ring.memory || !watch(driver, fd)) {
        channel_free(channel);
        return -1;
    }
    driver->channels[driver->channel_count] = channel;
    return (int)driver->channel_count++;
}

struct attachment *exact_attach(struct exact_driver *driver, int channel, int ifindex,
                                uint32_t index)
{
    struct channel *on = driver->channels[channel];
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment || !channel_attach(on, (uint32_t)ifindex, attachment)) {
        free(attachment);
        return NULL;
    }
    attachment->channel = on;
    attachment->index = index;
    attachment->address = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_halen = ETH_ALEN};
    driver->by_index[index] = attachment;
    return attachment;
}

bool exact_attach_end(struct exact_driver *driver, int channel, int ifindex, uint32_t index,
                      uint32_t cable, uint32_t room)
{
    struct attachment *attachment = exact_attach(driver, channel, ifindex, index);
    if (!attachment)
        return false;
    attachment->end = driver->fabric->ports[index];
    attachment->cable = cable;
    attachment->room = room < STAMPS ? room : STAMPS;
    driver->cables[driver->attached_cables++] = attachment;
    return true;
}

static void use_rings(struct exact_driver *driver)
{
    const struct exchange *exchange = &driver->exchange;
    for (uint32_t i = 0; i < driver->attached_cables; i++) {
        struct attachment *cable = driver->cables[i];
        bool joined = exact_has_joined(driver);
        cable->sends = joined ? exchange_sends(exchange, cable->cable) : NULL;
        cable->receives = joined ? exchange_receives(exchange, cable->cable) : NULL;
        cable->received = cable->taken = 0;
    }
}

/* New NICs count the losses of links from their start. A link that is down then is lost once. */
static void forget_cuts(const struct exact_driver *driver)
{
    for (uint32_t i = 0; i < driver->attached_cables; i++) {
        struct port *end = driver->cables[i]->end;
        port_forget_cuts(end);
        port_forget_cuts(exact_near_end(end));
    }
}

/* Of the switches. Each time that the other process writes it wakes once. */
static void watch_resume(const struct exact_driver *driver)
{
    struct epoll_event written = {.events = EPOLLIN | EPOLLET,
                                  .data.fd = driver->exchange.wakes.resume_fd};
    if (driver->side == EXACT_SWITCHES)
        epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, driver->exchange.wakes.resume_fd, &written);
}

static void forget_resume(const struct exact_driver *driver)
{
    epoll_ctl(driver->epoll_fd, EPOLL_CTL_DEL, driver->exchange.wakes.resume_fd, NULL);
}

bool exact_join(struct exact_driver *driver, int memory_fd, struct exact_wakes wakes,
                int64_t limit_ps)
{
    if (!exchange_open(&driver->exchange, memory_fd, driver->attached_cables, driver->side))
        return false;
    driver->exchange.wakes = wakes;
    watch_resume(driver);
    if (driver->side == EXACT_SWITCHES) {
        driver->exchange.memory->epoch = fabric_now(driver->fabric);
        exchange_ask_to_hold(&driver->exchange, driver->hold);
        forget_cuts(driver);
    } else {
        driver->exchange.epoch = driver->exchange.memory->epoch;
    }
    driver->limit = limit_ps;
    driver->stop = driver->arrives = NEVER;
    driver->started = driver->done = driver->stands = driver->unpublished = driver->ponders = false;
    driver->idle_after = fabric_now(driver->fabric) + EXACT_SETTLES;
    driver->received = driver->stood = driver->nudged = 0;
    driver->counts = (struct exact_counts){0};
    use_rings(driver);
    return true;
}

void exact_leave(struct exact_driver *driver)
{
    forget_resume(driver);
    exchange_leave(&driver->exchange);
    exchange_close(&driver->exchange);
    use_rings(driver);
    driver->idle_after = fabric_now(driver->fabric) + EXACT_SETTLES;
}

void exact_stop_at_event(struct exact_driver *driver, const bool *event, int64_t until_ps)
{
    driver->event = event;
    driver->event_at = until_ps;
}

void exact_hold(struct exact_driver *driver, int64_t at_ps)
{
    driver->hold = at_ps;
    driver->hold_is_new = true;
    if (exact_has_joined(driver))
        exchange_ask_to_hold(&driver->exchange, at_ps);
}

void exact_changed(struct exact_driver *driver)
{
    if (exact_has_joined(driver))
        exchange_outdate(&driver->exchange);
}

void exact_stop_at_link_changes(struct exact_driver *driver)
{
    driver->links_changed = fabric_links_changed_flag(driver->fabric);
}

void exact_run_on(struct exact_driver *driver, int64_t until_ps)
{
    if (until_ps > driver->runs_on_until)
        driver->runs_on_until = until_ps;
}

void exact_set_workload(struct exact_driver *driver, struct workload *workload)
{
    driver->workload = workload;
}
