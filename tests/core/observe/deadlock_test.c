/* Detection of a credit loop, in a fabric of one switch whose cables lead back to itself: lane 0 of
 * its first port waits for lane 1 of the same port, which waits for lane 0. */
#include "observe/deadlock.h"
#include "testbench.h"

enum { PORTS = 2, LANES = 2, FRAMES = 16, PACKET = 64, THIRD_LANE = 2 };

#define POLL_INTERVAL (100 * PS_PER_US)

struct setup {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct deadlock_watch deadlocks;
    struct fabric_switch sw;
    struct port *ports[PORTS];
};

/* Queues a packet that arrived on lane `came_on` of port `in` and waits for credit on another lane.
 */
static void let_wait(struct setup *setup, uint32_t in, uint8_t came_on, uint32_t out, uint8_t lane)
{
    struct switch_port *waits = switch_port(&setup->sw, out);
    struct frame *frame = frame_new(&setup->pool, FRAME_IB, PACKET);
    frame->tc = lane;
    frame->charge = (struct charge){.in_port = (uint16_t)in, .tc = came_on, .bytes = PACKET};
    queue_push(&waits->queue[lane], frame);
    waits->port.stopped |= (uint16_t)(1u << lane);
    switch_port(&setup->sw, in)->port.credit->of_class[came_on].rx.used_blocks +=
        credit_blocks(PACKET);
}

static void setup_init(struct setup *setup)
{
    const struct switch_config config = {.ports = PORTS, .forwarding = FORWARDING_LID};
    struct switch_port_config ports[PORTS] = {0};
    for (uint32_t i = 0; i < PORTS; i++) {
        ports[i].port = (struct port_config){.framing = FRAMING_INFINIBAND,
                                             .flow_control = FLOW_CONTROL_CREDITS};
        for (uint8_t lane = 0; lane < CLASSES; lane++)
            ports[i].queue_of[lane] = lane;
    }
    *setup = (struct setup){0};
    clock_init(&setup->clock);
    EXPECT(frame_pool_init(&setup->pool, &setup->arena, FRAMES, FRAMES, FRAME_MAX));
    EXPECT(switch_init(&setup->sw, &setup->arena, &setup->clock, &setup->pool, &config, ports));
    for (uint32_t i = 0; i < PORTS; i++) {
        struct port *port = &switch_port(&setup->sw, i + 1)->port;
        port_connect(port, port, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port->index = i;
        setup->ports[i] = port;
    }
    EXPECT(deadlock_watch_init(&setup->deadlocks, setup->ports, PORTS, POLL_INTERVAL));
    let_wait(setup, 1, 0, 1, 1);
    let_wait(setup, 1, 1, 1, 0);
    deadlock_watch_start(&setup->deadlocks, 0);
}

static void setup_free(struct setup *setup)
{
    deadlock_watch_free(&setup->deadlocks);
    switch_free(&setup->sw);
    arena_free(&setup->arena);
}

static void run_poll(struct setup *setup)
{
    picoseconds look = setup->deadlocks.next_look;
    clock_run_until(&setup->clock, look - 1);
    deadlock_watch_look(&setup->deadlocks, look);
    clock_run_until(&setup->clock, look);
}

TEST(credit_loop_over_two_lanes_is_reported_once)
{
    static struct setup setup;
    setup_init(&setup);
    run_poll(&setup);
    const struct deadlock_watch *watch = &setup.deadlocks;
    EXPECT_EQUAL(1, watch->count);
    EXPECT_EQUAL(0, watch->found[0].priority);
    EXPECT_EQUAL(2, watch->found[0].length);
    let_wait(
        &setup, 2, 0, 1,
        0); /* another lane waits for the loop, and the search that starts there finds the loop */
    let_wait(&setup, 2, THIRD_LANE, 2, 0);
    run_poll(&setup);
    EXPECT_EQUAL(1, watch->count);
    setup_free(&setup);
}

MAIN(RUN(credit_loop_over_two_lanes_is_reported_once))
