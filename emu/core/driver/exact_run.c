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

static picoseconds later(picoseconds one, picoseconds other)
{
    return one > other ? one : other;
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
    return earlier(after(nics->checked, driver->step), driver->limit);
}

/* When something happens next, besides samples. */
static picoseconds next_deadline(const struct exact_driver *driver)
{
    struct clock *clock = fabric_only_clock(driver->fabric);
    struct sampler *sampler = &driver->fabric->parts[0].sampler;
    return sampler->interval ? clock_next_deadline_besides(clock, &sampler->due)
                             : clock_next_deadline(clock);
}

/* Of the switches: whether time is to run although nothing is on the way. */
static bool runs_on(const struct exact_driver *driver)
{
    return fabric_now(driver->fabric) < driver->runs_on_until;
}

/* Runs that end with their workload need not know. */
static enum fabric_activity activity(const struct exact_driver *driver)
{
    if (driver->foreign.first || driver->limit != NEVER || runs_on(driver))
        return FABRIC_WORKS;
    return fabric_activity(driver->fabric);
}

/* When something happens next besides credit updates. Samples may be late. */
static picoseconds next_event(const struct exact_driver *driver)
{
    const struct timer *samples = &driver->fabric->parts[0].sampler.due;
    picoseconds next = clock_next_event(fabric_only_clock(driver->fabric), samples);
    return driver->event ? earlier(next, driver->event_at) : next;
}

/* When both are to stand. The NICs read it, and their window tells the switches. */
static picoseconds asked_to_hold(const struct exact_driver *driver)
{
    return driver->side == EXACT_NICS ? exchange_asked_to_hold(&driver->exchange) : NEVER;
}

static void publish(struct exact_driver *driver)
{
    struct clock *clock = fabric_only_clock(driver->fabric);
    exact_flush(driver);
    picoseconds next = next_deadline(driver);
    if (driver->event)
        next = earlier(next, driver->event_at);
    driver->foreign_announced = driver->foreign_waiting;
    enum fabric_activity own = activity(driver);
    bool rests = own == FABRIC_RESTS;
    struct window window = {.next = driver->foreign.first ? clock->now : next,
                            .arrives = driver->arrives,
                            .stop = driver->stop,
                            .checked = driver->checked,
                            .now = clock->now,
                            .hold = asked_to_hold(driver),
                            .sent = driver->counts.sent,
                            .activity = own,
                            .awaits = rests ? next_event(driver) : clock->now,
                            .upkeep_period = rests ? fabric_upkeep_period(driver->fabric) : NEVER,
                            .last_upkeep = rests ? clock_last_upkeep(clock) : NEVER,
                            .done = driver->done};
    driver->arrives = NEVER;
    exchange_publish(&driver->exchange, &window);
}

/* Those that the other process knows of: it runs no further in this window than they let it. */
static void deliver_foreign(struct exact_driver *driver)
{
    struct fabric *fabric = driver->fabric;
    for (; driver->foreign_announced; driver->foreign_announced--) {
        struct frame *frame = list_pop(&driver->foreign);
        driver->foreign_waiting--;
        struct port *end = fabric->ports[frame->out_port];
        frame->out_port = 0;
        frame->tail_at = fabric_now(fabric);
        port_deliver(end->line.far, frame, fabric_now(fabric));
    }
}

/* Without a workload, a program decides when the run ends, and there are no steps. */
static void check_workload(struct exact_driver *driver, picoseconds now)
{
    if (driver->workload && workload_is_finished(driver->workload, now))
        driver->stop = now;
    driver->checked = driver->event ? NEVER : now;
}

/* When both processes stand, as known after their latest windows; NEVER: they run on. Neither has
 * passed that time. */
static picoseconds standing_time(const struct exact_driver *driver)
{
    struct window own = exchange_own(&driver->exchange), other = exchange_other(&driver->exchange);
    picoseconds hold = driver->side == EXACT_NICS ? own.hold : other.hold;
    return later(hold, later(own.now, other.now));
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

/* For how long both processes may rest: a number of whole periods, after which everything is as it
 * is now. 0: they may not. */
static picoseconds rest_of(const struct exact_driver *driver, const struct window *own,
                           const struct window *other)
{
    picoseconds latest = later(own->now, other->now);
    picoseconds to = earlier(earlier(own->awaits, other->awaits), standing_time(driver));
    picoseconds period = common_multiple(own->upkeep_period, other->upkeep_period);
    if (to == NEVER || to <= latest || period == NEVER)
        return 0;
    picoseconds rest = (to - latest - 1) / period * period;
    bool has_all = own->last_upkeep <= own->now + rest && other->last_upkeep <= other->now + rest;
    return has_all ? rest : 0;
}

/* While programs wait for a time and nothing but credit updates is on the way, both processes go
 * there at once: switches would send each other some million of these in a second. Returns whether
 * this one has. */
static bool skip_rest(struct exact_driver *driver, const struct window *own,
                      const struct window *other)
{
    if (own->activity != FABRIC_RESTS || other->activity != FABRIC_RESTS)
        return false;
    if (own->arrives != NEVER || other->arrives != NEVER) /* between the processes */
        return false;
    picoseconds rest = rest_of(driver, own, other);
    if (rest > 0)
        fabric_skip(driver->fabric, rest);
    return rest > 0;
}

static void run_window(struct exact_driver *driver)
{
    struct exchange *exchange = &driver->exchange;
    struct clock *clock = fabric_only_clock(driver->fabric);
    struct window own = exchange_own(exchange), other = exchange_other(exchange);
    bool is_outdated = exchange_is_outdated(exchange, 0);
    if (!is_outdated && skip_rest(driver, &own, &other)) {
        driver->counts.windows++;
        return;
    }
    picoseconds out = exchange->own->lookahead, in = exchange->other->lookahead;
    picoseconds mine = earlier(own.next, other.arrives);
    picoseconds theirs = earlier(other.next, own.arrives);
    picoseconds bound = after(earlier(theirs, after(mine, out)), in);
    picoseconds end = step_end(driver, driver->side == EXACT_NICS ? &own : &other);
    end = earlier(end, earlier(own.stop, other.stop));
    picoseconds hold = standing_time(driver);
    if (is_outdated)
        hold = earlier(hold, later(own.now, other.now));
    picoseconds until = earlier(bound == NEVER ? NEVER : bound - 1, earlier(end, hold));
    if (driver->event)
        until = earlier(until, driver->event_at);
    driver->counts.windows++;
    deliver_foreign(driver);
    if (until > clock->now && until != NEVER)
        run_fabric(driver, until);
    if (driver->side == EXACT_NICS && clock->now == end && end > driver->checked)
        check_workload(driver, end);
    driver->done = clock->now >= earlier(driver->limit, earlier(driver->stop, other.stop));
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* How a wait for the end of the other's window ends. */
enum waited {
    WAITED_ENOUGH,
    WAITED_FOR_NOTHING, /* nothing is left to wait for */
    WAITED_FOR_PROGRAM,
    WAITED_UNTIL_WOKEN,
    WAITED_IN_VAIN,
};

static enum exact_outcome outcome_of(enum waited waited)
{
    static const enum exact_outcome outcomes[] = {[WAITED_FOR_PROGRAM] = EXACT_STANDS,
                                                  [WAITED_UNTIL_WOKEN] = EXACT_WOKEN,
                                                  [WAITED_IN_VAIN] = EXACT_FAILED};
    return outcomes[waited];
}

static bool is_woken(const struct exact_driver *driver, int64_t wait_ns, bool *timed_out)
{
    struct epoll_event events[EXACT_EVENTS];
    int wait_ms = (int)(wait_ns / (NS_PER_S / 1000));
    int count = epoll_wait(driver->epoll_fd, events, EXACT_EVENTS, wait_ms);
    *timed_out = count == 0;
    for (int i = 0; i < count; i++)
        if (events[i].data.fd == driver->wake_fd)
            return true;
    return false;
}

/* Of the switches: whether time may pass again, which the NICs have yet to hear. */
static bool is_to_go_on(const struct exact_driver *driver)
{
    return driver->hold_is_new && fabric_now(driver->fabric) < driver->hold;
}

/* Of the switches: whether they wait until the NICs go on. They have something to do, such as
 * frames that programs have sent, or time that stood may pass again. */
static bool awaits_nics(const struct exact_driver *driver)
{
    return is_to_go_on(driver) || (fabric_now(driver->fabric) < driver->hold &&
                                   (driver->foreign.first || runs_on(driver)));
}

static void nudge(struct exact_driver *driver)
{
    uint32_t turn = driver->exchange.own->turn;
    if (!awaits_nics(driver) || (driver->nudged == turn && !driver->hold_is_new))
        return;
    driver->nudged = turn;
    driver->hold_is_new = false;
    exchange_nudge(&driver->exchange);
}

static bool has_failed(struct exact_driver *driver)
{
    if (exchange_is_left(&driver->exchange))
        exact_fail(driver, (struct exact_failure){.kind = EXACT_OTHER_LEFT});
    return driver->has_failed;
}

/* While a program decides what the NICs do, frames of other programs wake the switches. Returns for
 * another look at the other process, or because nothing has changed for some time: then the
 * caller polls. */
static enum waited wait_for_program(struct exact_driver *driver, uint32_t more)
{
    struct exchange *exchange = &driver->exchange;
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + PONDER_NS;
    for (bool timed_out = false; exchange_other_ponders(exchange);) {
        exact_drain(driver);
        if (has_failed(driver))
            return WAITED_IN_VAIN;
        exchange_poll(exchange, true);
        if (timed_out)
            exchange_take_resume(exchange); /* of an earlier turn, or the turn has come */
        if (exchange_wait(exchange, more, 0))
            break;
        nudge(driver);
        if (timed_out)
            return WAITED_FOR_PROGRAM;
        if (is_woken(driver, PONDER_NS, &timed_out))
            return WAITED_UNTIL_WOKEN;
        timed_out |= clock_ns(CLOCK_MONOTONIC) >= until_ns;
    }
    exchange_poll(exchange, false);
    return WAITED_ENOUGH;
}

/* Waits until the other process has published so many windows more than this one. */
static enum waited wait_for_other(struct exact_driver *driver, uint32_t more)
{
    struct exchange *exchange = &driver->exchange;
    bool polls = driver->side == EXACT_SWITCHES && exchange->wakes.resume_fd >= 0;
    int64_t since_ns = 0;
    while (!exchange_wait(exchange, more, polls ? PONDER_NS : WAIT_NS)) {
        bool ponders = exchange_other_ponders(exchange), timed_out;
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        since_ns = since_ns && !ponders ? since_ns : now_ns;
        if (ponders && polls) {
            enum waited waited = wait_for_program(driver, more);
            if (waited != WAITED_ENOUGH)
                return waited;
        }
        exact_drain(driver);
        if (now_ns - since_ns > driver->patience.other_ns && !driver->stands)
            exact_fail(driver, (struct exact_failure){.kind = EXACT_OTHER_SILENT});
        if (has_failed(driver))
            return WAITED_IN_VAIN;
        if (is_woken(driver, 0, &timed_out))
            return WAITED_UNTIL_WOKEN;
    }
    return WAITED_ENOUGH;
}

/* Of the switches: the caller has polled meanwhile. */
static void stop_polling(struct exact_driver *driver)
{
    struct exchange *exchange = &driver->exchange;
    if (!exact_has_joined(driver) || !exchange->own->polls)
        return;
    exchange_poll(exchange, false);
    exchange_take_resume(exchange);
}

/* Whether to return to the caller, for a short time. */
static bool is_to_pause(const struct exact_driver *driver, uint32_t rounds, int64_t until_ns)
{
    return fabric_captures_want_out(driver->fabric) ||
           (rounds % ROUNDS_BETWEEN_LOOKS == 0 && clock_ns(CLOCK_MONOTONIC) >= until_ns);
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
    bool is_new = driver->stands && driver->stood != turn && !is_to_go_on(driver);
    driver->stood = turn;
    if (is_new && driver->side == EXACT_SWITCHES && driver->exchange.wakes.resume_fd >= 0)
        exchange_poll(&driver->exchange, true); /* a program may go on meanwhile */
    return is_new;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Frames that are on the way now count for a while. */
static void keep_from_idling(struct exact_driver *driver)
{
    driver->idle_after = fabric_now(driver->fabric) + EXACT_SETTLES;
}

static enum exact_outcome let_program_decide(struct exact_driver *driver, enum exact_outcome why)
{
    driver->ponders = true;
    driver->order_left = fabric_only_clock(driver->fabric)->order;
    if (why == EXACT_EVENT)
        keep_from_idling(driver);
    exchange_ponder(&driver->exchange, why != EXACT_EVENT);
    return why;
}

/* Whether the program has posted work in its turn, or the switches have nudged the NICs. */
static bool program_goes_on(struct exact_driver *driver)
{
    if (!driver->ponders)
        return false;
    bool posted = fabric_only_clock(driver->fabric)->order != driver->order_left;
    driver->ponders = false;
    if (posted)
        keep_from_idling(driver);
    return exchange_is_nudged(&driver->exchange) || posted;
}

/* Whether nothing is due in either process. */
static bool nothing_is_due(const struct exact_driver *driver, const struct window *other)
{
    return other->next == NEVER && other->arrives == NEVER && next_deadline(driver) == NEVER;
}

/* Whether the program would wait for ever, after a window of both processes that the NICs have not
 * published. What is on the way may be stuck: it counts only for a while. */
static bool is_idle(struct exact_driver *driver, const struct window *other)
{
    enum fabric_activity own = activity(driver);
    enum fabric_activity most = own > other->activity ? own : other->activity;
    if (most != FABRIC_WAITS)
        keep_from_idling(driver);
    return most == FABRIC_RESTS ||
           (most == FABRIC_WAITS &&
            (fabric_now(driver->fabric) >= driver->idle_after || nothing_is_due(driver, other)));
}

/* What the NICs alone know of that. */
static bool may_be_idle(struct exact_driver *driver)
{
    if (!driver->event || driver->event_at != NEVER || *driver->event || driver->arrives != NEVER)
        return false;
    picoseconds hold = exchange_asked_to_hold(&driver->exchange);
    if (hold != NEVER && hold > fabric_now(driver->fabric))
        return false; /* time passes up to then */
    bool works = activity(driver) == FABRIC_WORKS;
    if (works)
        keep_from_idling(driver);
    return !works;
}

/* Publishes the window that has been run, unless that is left for a program to decide. */
static enum waited publish_window(struct exact_driver *driver, bool goes_on)
{
    if (!goes_on && !driver->has_failed && may_be_idle(driver)) {
        enum waited waited = wait_for_other(driver, 1);
        if (waited != WAITED_ENOUGH)
            return waited;
        struct window other = exchange_other_next(&driver->exchange);
        exact_receive_sent(driver, other.sent);
        bool is_outdated = exchange_is_outdated(&driver->exchange, 1);
        if (!driver->has_failed && !is_outdated && is_idle(driver, &other))
            return WAITED_FOR_NOTHING;
    }
    exchange_go_on(&driver->exchange);
    publish(driver);
    driver->unpublished = false;
    return driver->has_failed ? WAITED_IN_VAIN : WAITED_ENOUGH;
}

/* ---- the loop ------------------------------------------------------------------------------ */

static enum exact_outcome run_joined(struct exact_driver *driver, int64_t until_ns)
{
    bool stood = driver->ponders && driver->stands;
    bool goes_on = program_goes_on(driver);
    if (stood && !goes_on)
        return let_program_decide(driver, EXACT_STANDS);
    if (!driver->started)
        begin(driver);
    for (uint32_t rounds = 1;; rounds++) {
        enum waited waited = WAITED_ENOUGH;
        if (driver->unpublished) {
            waited = publish_window(driver, goes_on);
            if (waited == WAITED_FOR_NOTHING)
                return let_program_decide(driver, EXACT_IDLE);
            if (waited == WAITED_ENOUGH && is_to_pause(driver, rounds, until_ns))
                return EXACT_PAUSED;
        }
        if (waited == WAITED_ENOUGH)
            waited = wait_for_other(driver, 0);
        if (waited != WAITED_ENOUGH)
            return outcome_of(waited);
        struct window own = exchange_own(&driver->exchange);
        struct window other = exchange_other(&driver->exchange);
        exact_receive_sent(driver, other.sent);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (own.done && other.done)
            return EXACT_FINISHED;
        if (has_come_to_stand(driver))
            return driver->event ? let_program_decide(driver, EXACT_STANDS) : EXACT_STANDS;
        if (links_have_changed(driver) && !driver->stands)
            return EXACT_LINKS_CHANGED;
        run_window(driver);
        driver->unpublished = true;
        goes_on = false;
        if (is_programs_turn(driver) && !driver->has_failed)
            return let_program_decide(driver, EXACT_EVENT);
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
        keep_from_idling(driver);
    return runs_on(driver) ||
           (now < driver->idle_after && fabric_frames_in_use(driver->fabric) > 0);
}

static enum exact_outcome run_alone(struct exact_driver *driver, int64_t until_ns)
{
    for (bool timed_out;;) {
        exact_drain(driver);
        exact_flush(driver);
        if (!driver->has_failed && !goes_on_alone(driver))
            return EXACT_STANDS;
        if (!driver->has_failed && links_have_changed(driver))
            return EXACT_LINKS_CHANGED;
        driver->foreign_announced = driver->foreign_waiting;
        deliver_foreign(driver);
        run_fabric(driver, earlier(fabric_now(driver->fabric) + driver->step, driver->hold));
        exact_flush(driver);
        if (driver->has_failed)
            return EXACT_FAILED;
        if (is_woken(driver, 0, &timed_out))
            return EXACT_WOKEN;
        if (fabric_captures_want_out(driver->fabric) || clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return EXACT_PAUSED;
    }
}

enum exact_outcome exact_run(struct exact_driver *driver, int64_t until_ns)
{
    stop_polling(driver);
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
