/* A line restores the spacing of a host's frames after the machine delayed some of them. */
#include "link/port.h"
#include "testbench.h"

enum { FRAMES = 64, FRAME = 1500, WIRE = FRAME + 24, HELD_UP = 20 };

struct setup {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct port end, leaf;
    uint32_t arrived;
    picoseconds latest; /* when the last frame arrived */
};

static void at_leaf(struct port *port, struct frame *frame, picoseconds now)
{
    struct setup *setup = port->owner;
    EXPECT(now >= setup->latest);
    setup->arrived++;
    setup->latest = now;
    frame_free(&setup->pool, frame);
}

static const struct port_handler handler = {.receive = at_leaf};

static void setup_init(struct setup *setup, bool paced)
{
    *setup = (struct setup){0};
    clock_init(&setup->clock);
    EXPECT(frame_pool_init(&setup->pool, &setup->arena, FRAMES, FRAMES, FRAME_MAX));
    const struct port_config ethernet = {.framing = FRAMING_ETHERNET};
    port_init(&setup->end, &setup->arena, &setup->clock, &setup->pool, &handler, setup, &ethernet);
    port_init(&setup->leaf, &setup->arena, &setup->clock, &setup->pool, &handler, setup, &ethernet);
    port_connect(&setup->end, &setup->leaf, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
    port_connect(&setup->leaf, &setup->end, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
    setup->end.line.paced = paced;
    port_start(&setup->end, 0);
    port_start(&setup->leaf, 0);
}

static void inject(struct setup *setup)
{
    struct frame *frame = frame_new(&setup->pool, FRAME_ETHERNET, FRAME);
    port_inject(&setup->end, frame, setup->clock.now);
}

/* Injects HELD_UP frames at once, as after a stall of the machine, then HELD_UP more on schedule.
 * Returns how late the last frame arrives. */
static picoseconds lateness_at_the_end(struct setup *setup)
{
    picoseconds spacing = line_time(&setup->end.line, WIRE);
    for (int i = 0; i < HELD_UP; i++)
        inject(setup);
    for (int i = 0; i < HELD_UP; i++) {
        clock_run_until(&setup->clock, setup->clock.now + spacing);
        inject(setup);
    }
    picoseconds in_time = setup->clock.now + spacing + CABLE_DELAY;
    clock_run_until(&setup->clock, in_time + HELD_UP * spacing);
    EXPECT_EQUAL(2 * HELD_UP, setup->arrived);
    arena_free(&setup->arena);
    return setup->latest - in_time;
}

TEST(paced_sender_catches_up_after_a_stall)
{
    static struct setup setup;
    setup_init(&setup, true);
    EXPECT_EQUAL(0, lateness_at_the_end(&setup));
}

/* A frame injected some nanoseconds early, as when clocks differ, arrives no earlier than that. */
TEST(frame_is_never_earlier_than_on_an_idle_line)
{
    static struct setup setup;
    setup_init(&setup, true);
    picoseconds spacing = line_time(&setup.end.line, WIRE);
    inject(&setup);
    clock_run_until(&setup.clock, spacing - 10 * PS_PER_NS);
    inject(&setup);
    picoseconds in_time = setup.clock.now + spacing + CABLE_DELAY;
    clock_run_until(&setup.clock, PS_PER_MS);
    EXPECT_EQUAL(2, setup.arrived);
    EXPECT_EQUAL(in_time, setup.latest);
    arena_free(&setup.arena);
}

/* A host's kernel sends as fast as it can; the cable still limits the frames to its rate. */
TEST(unpaced_sender_is_limited_to_the_line_rate)
{
    static struct setup setup;
    setup_init(&setup, false);
    EXPECT_EQUAL((HELD_UP - 1) * line_time(&setup.end.line, WIRE), lateness_at_the_end(&setup));
}

TEST(only_a_paced_line_counts_its_backlog_as_lateness)
{
    static struct setup setup;
    for (int paced = 0; paced <= 1; paced++) {
        setup_init(&setup, paced);
        EXPECT_EQUAL(0, line_backlog(&setup.end.line, 0));
        inject(&setup);
        EXPECT_EQUAL(paced ? line_time(&setup.end.line, WIRE) : 0,
                     line_backlog(&setup.end.line, 0));
        clock_run_until(&setup.clock, PS_PER_MS);
        EXPECT_EQUAL(0, line_backlog(&setup.end.line, setup.clock.now));
        arena_free(&setup.arena);
    }
}

MAIN(RUN(paced_sender_catches_up_after_a_stall), RUN(frame_is_never_earlier_than_on_an_idle_line),
     RUN(unpaced_sender_is_limited_to_the_line_rate),
     RUN(only_a_paced_line_counts_its_backlog_as_lateness))
