/* The windows of a process on the exact clock, and the loop that runs them (exchange.h). */
#define _GNU_SOURCE /* struct mmsghdr */

#include <sys/epoll.h>

#include "driver/exact_state.h"
#include "nic/nic_api.h"

enum { ROUNDS_BETWEEN_LOOKS = 64 }; /* at the wall clock */

/* ---- windows ----------------------------------------------------------------------------- */

static picoseconds earlier(picoseconds one, picoseconds other)
{
    return one < other ? one : other;
}

static picoseconds after(picoseconds time, picoseconds span)
{
    return time == NEVER ? NEVER : time + span;
}

static picoseconds own_lookahead(const struct exact_driver *driver)
{
    picoseconds least = NEVER;
    for (uint32_t i = 0; i < driver->attached_cables; i++) {
        const struct port *near = exact_near_end(driver->cables[i]->end);
        least = earlier(least, port_lookahead(near));
    }
    return least;
}

/* The end of the step that the NICs are in. There they check whether the workload has ended. */
static picoseconds step_end(const struct exact_driver *driver, const struct window *nics)
{
    return earlier(nics->checked + driver->step, driver->limit);
}

static void publish(struct exact_driver *driver)
{
    struct clock *clock = fabric_only_clock(driver->fabric);
    exact_flush(driver);
    struct sampler *sampler = &driver->fabric->parts[0].sampler;
    picoseconds next = sampler->interval ? clock_next_deadline_besides(clock, &sampler->due)
                                         : clock_next_deadline(clock);
    if (driver->event)
        next = earlier(next, driver->event_at);
    struct window window = {.next = driver->foreign.first ? clock->now : next,
                            .arrives = driver->arrives,
                            .stop = driver->stop,
                            .checked = driver->checked,
                            .now = clock->now,
                            .hold = driver->hold,
                            .sent = driver->counts.sent,
                            .done = driver->done};
    driver->arrives = NEVER;
    exchange_publish(&driver->exchange, &window);
}

static void deliver_foreign(struct exact_driver *driver)
{
    struct fabric *fabric = driver->fabric;
    while (driver->foreign.first) {
        struct frame *frame = list_pop(&driver->foreign);
        driver->foreign_waiting--;
        struct port *end = fabric->ports[frame->out_port];
        frame->out_port = 0;
        frame->tail_at = fabric_now(fabric);
        port_deliver(end->line.far, frame, fabric_now(fabric));
    }
}

/* Without a workload, a program decides when the run ends. */
static void check_workload(struct exact_driver *driver, picoseconds now)
{
    if (driver->workload && workload_is_finished(driver->workload, now))
        driver->stop = now;
    driver->checked = now;
}

/* When both processes stand, as known after their latest windows; NEVER: they run on. Neither has
 * passed that time. */
static picoseconds standing_time(const struct exact_driver *driver)
{
    struct window own = exchange_own(&driver->exchange), other = exchange_other(&driver->exchange);
    picoseconds hold = driver->side == EXACT_SWITCHES ? own.hold : other.hold;
    picoseconds latest = own.now > other.now ? own.now : other.now;
    return hold > latest ? hold : latest;
}

/* Whether both processes stand now. */
static bool both_stand(const struct exact_driver *driver)
{
    picoseconds hold = standing_time(driver);
    return exchange_own(&driver->exchange).now == hold &&
           exchange_other(&driver->exchange).now == hold;
}

static bool links_have_changed(const struct exact_driver *driver)
{
    return driver->links_changed && *driver->links_changed;
}

/* Whether a program is to decide now what the NICs do next. */
static bool is_programs_turn(const struct exact_driver *driver)
{
    return driver->event && (*driver->event || fabric_now(driver->fabric) >= driver->event_at);
}

/* Stops before `until` when links change, or at the event that a program waits for. */
static void run_fabric(struct exact_driver *driver, picoseconds until)
{
    const bool *event = driver->links_changed ? driver->links_changed : driver->event;
    if (event)
        fabric_run_to_event(driver->fabric, until, event);
    else
        fabric_run(driver->fabric, until);
}

static void run_window(struct exact_driver *driver)
{
    struct exchange *exchange = &driver->exchange;
    struct clock *clock = fabric_only_clock(driver->fabric);
    struct window own = exchange_own(exchange), other = exchange_other(exchange);
    picoseconds out = exchange->own->lookahead, in = exchange->other->lookahead;
    picoseconds mine = earlier(own.next, other.arrives);
    picoseconds theirs = earlier(other.next, own.arrives);
    picoseconds bound = after(earlier(theirs, after(mine, out)), in);
    picoseconds end = step_end(driver, driver->side == EXACT_NICS ? &own : &other);
    end = earlier(end, earlier(own.stop, other.stop));
    picoseconds hold = standing_time(driver);
    picoseconds until = earlier(bound == NEVER ? NEVER : bound - 1, earlier(end, hold));
    if (driver->event)
        until = earlier(until, driver->event_at);
    driver->counts.windows++;
    deliver_foreign(driver);
    if (until > clock->now)
        run_fabric(driver, until);
    if (driver->side == EXACT_NICS && clock->now == end && end > driver->checked)
        check_workload(driver, end);
    driver->done = clock->now >= earlier(driver->limit, earlier(driver->stop, other.stop));
}

/* ---- the loop ------------------------------------------------------------------------------ */

static bool is_woken(const struct exact_driver *driver)
{
    struct epoll_event events[EXACT_EVENTS];
    int count = epoll_wait(driver->epoll_fd, events, EXACT_EVENTS, 0);
    for (int i = 0; i < count; i++)
        if (events[i].data.fd == driver->wake_fd)
            return true;
    return false;
}

/* Waits for the end of the other's window. False: EXACT_WOKEN or a failure. */
static bool wait_for_other(struct exact_driver *driver)
{
    int64_t since_ns = 0;
    while (!exchange_wait(&driver->exchange, WAIT_NS)) {
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns && !exchange_other_ponders(&driver->exchange) ? since_ns : now_ns;
        exact_drain(driver);
        if (now_ns - since_ns > driver->patience.other_ns && !driver->stands)
            exact_fail(driver, (struct exact_failure){.kind = EXACT_OTHER_SILENT});
        if (exchange_is_left(&driver->exchange))
            exact_fail(driver, (struct exact_failure){.kind = EXACT_OTHER_LEFT});
        if (driver->has_failed || is_woken(driver))
            return false;
    }
    return true;
}

static void begin(struct exact_driver *driver)
{
    driver->exchange.own->lookahead = own_lookahead(driver);
    if (driver->side == EXACT_NICS)
        check_workload(driver, fabric_now(driver->fabric));
    driver->started = true;
    publish(driver);
}

/* Whether both processes stand, which has not been reported for this window. */
static bool has_come_to_stand(struct exact_driver *driver)
{
    uint32_t turn = driver->exchange.own->turn;
    driver->stands = both_stand(driver);
    bool is_new = driver->stands && driver->stood != turn;
    driver->stood = turn;
    return is_new;
}

/* The first window, or the one that waited for the program. */
static void publish_first(struct exact_driver *driver)
{
    exchange_ponder(&driver->exchange, false);
    if (!driver->started)
        begin(driver);
    else if (driver->unpublished)
        publish(driver);
    driver->unpublished = false;
}

static enum exact_outcome let_program_decide(struct exact_driver *driver)
{
    driver->unpublished = true;
    exchange_ponder(&driver->exchange, true);
    return EXACT_EVENT;
}

static enum exact_outcome run_joined(struct exact_driver *driver, int64_t until_ns)
{
    publish_first(driver);
    for (uint32_t rounds = 1;; rounds++) {
        if (!wait_for_other(driver))
            return driver->has_failed ? EXACT_FAILED : EXACT_WOKEN;
        struct window own = exchange_own(&driver->exchange);
        struct window other = exchange_other(&driver->exchange);
        exact_receive_sent(driver, other.sent);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (own.done && other.done)
            return EXACT_FINISHED;
        if (has_come_to_stand(driver))
            return EXACT_STANDS;
        if (links_have_changed(driver) && !driver->stands)
            return EXACT_LINKS_CHANGED;
        run_window(driver);
        if (is_programs_turn(driver) && !driver->has_failed)
            return let_program_decide(driver);
        publish(driver);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (fabric_captures_want_out(driver->fabric))
            return EXACT_PAUSED;
        if (rounds % ROUNDS_BETWEEN_LOOKS == 0 && clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return EXACT_PAUSED;
    }
}

/* Whether emulated time goes on in switches alone: up to the time at which it is to stand, or while
 * frames are on the way or switches are about to change their routes. */
static bool goes_on_alone(struct exact_driver *driver)
{
    picoseconds now = fabric_now(driver->fabric);
    if (driver->hold != NEVER)
        return now < driver->hold;
    if (driver->foreign.first)
        driver->idle_after = now + EXACT_SETTLES;
    return now < driver->runs_on_until ||
           (now < driver->idle_after && fabric_frames_in_use(driver->fabric) > 0);
}

static enum exact_outcome run_alone(struct exact_driver *driver, int64_t until_ns)
{
    for (;;) {
        exact_drain(driver);
        exact_flush(driver);
        if (!driver->has_failed && !goes_on_alone(driver))
            return EXACT_STANDS;
        if (!driver->has_failed && links_have_changed(driver))
            return EXACT_LINKS_CHANGED;
        deliver_foreign(driver);
        run_fabric(driver, earlier(fabric_now(driver->fabric) + driver->step, driver->hold));
        exact_flush(driver);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (is_woken(driver))
            return EXACT_WOKEN;
        if (fabric_captures_want_out(driver->fabric) || clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return EXACT_PAUSED;
    }
}

enum exact_outcome exact_run(struct exact_driver *driver, int64_t until_ns)
{
    return exact_has_joined(driver) ? run_joined(driver, until_ns) : run_alone(driver, until_ns);
}

/* ---- how it went ---------------------------------------------------------------------------- */

struct exact_failure exact_failed(const struct exact_driver *driver)
{
    return driver->failure;
}

struct exact_counts exact_counted(const struct exact_driver *driver)
{
    return driver->counts;
}
