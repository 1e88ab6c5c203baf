/* The table of samples, row by row: when a row is taken, what is in it, and what stays of it when
 * the table is full. */
#include "observe/sampler.h"

#include "link/pauses.h"
#include "testbench.h"

enum { CAPACITY = 8, WATCHED = 2, COLUMNS = 1 + WATCHED * GAUGES + 1 };

#define INTERVAL (100 * PS_PER_NS)

struct setup {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct port ports[WATCHED];
    struct sampler sampler;
    uint64_t flow_bytes;
};

static const struct port_handler handler = {0};

/* Ports without a cable's far end, which are not up, so that they never send. */
static void setup_init(struct setup *setup)
{
    const struct port_config config = {.framing = FRAMING_ETHERNET,
                                       .flow_control = FLOW_CONTROL_PFC,
                                       .pause = {.priorities = 0xFF}};
    *setup = (struct setup){0};
    clock_init(&setup->clock);
    EXPECT(frame_pool_init(&setup->pool, &setup->arena, 1, 1, FRAME_MAX));
    struct sample_table table;
    EXPECT(sample_table_init(&table, &setup->arena,
                             CAPACITY + 1, /* rows in pairs: an odd one stays unused */
                             COLUMNS));
    EXPECT(
        sampler_init(&setup->sampler, &setup->arena, &setup->clock, INTERVAL, table, WATCHED, 1));
    sampler_watch_time(&setup->sampler, 0);
    sampler_watch_count(&setup->sampler, COLUMNS - 1, &setup->flow_bytes);
    for (uint32_t i = 0; i < WATCHED; i++) {
        struct port *port = &setup->ports[i];
        port_init(port, &setup->arena, &setup->clock, &setup->pool, &handler, setup, &config);
        port->line.rate_bps = LINE_RATE;
        port->gauges->tx_wire = 1000 + i; /* before it is watched */
        sampler_watch(&setup->sampler, 1 + i * GAUGES, port);
    }
    sampler_start(&setup->sampler, 0);
}

static const int64_t *row(const struct setup *setup, uint32_t number)
{
    EXPECT(number < setup->sampler.rows);
    return setup->sampler.table.values + (size_t)setup->sampler.places[number] * COLUMNS;
}

/* The gauges of a port in a row. */
static struct gauges gauges(const struct setup *setup, uint32_t number, uint32_t port)
{
    return ((const struct gauges *)(row(setup, number) + 1))[port];
}

static int64_t flow(const struct setup *setup, uint32_t number)
{
    return row(setup, number)[COLUMNS - 1];
}

TEST(first_row_is_of_the_start_then_one_every_interval)
{
    static struct setup setup;
    setup_init(&setup);
    clock_run_until(&setup.clock, 3 * INTERVAL - 1);
    EXPECT_EQUAL(3, setup.sampler.rows);
    clock_run_until(&setup.clock, 3 * INTERVAL);
    EXPECT_EQUAL(4, setup.sampler.rows);
    for (uint32_t i = 0; i < 4; i++)
        EXPECT_EQUAL(i * INTERVAL, *row(&setup, i));
    arena_free(&setup.arena);
}

TEST(rows_are_copies_of_gauges_and_flows_of_their_time)
{
    static struct setup setup;
    setup_init(&setup);
    for (int64_t i = 0; i < 4; i++) {
        setup.flow_bytes = (uint64_t)(50 * i);
        setup.ports[0].gauges->queued = 10 + i;
        setup.ports[1].gauges->held = 20 + i;
        setup.ports[1].gauges->tx_wire += 30;
        clock_run_until(&setup.clock, i * INTERVAL);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct gauges one = gauges(&setup, i, 0), other = gauges(&setup, i, 1);
        EXPECT_EQUAL(50 * i, flow(&setup, i));
        EXPECT_EQUAL(10 + i, one.queued);
        EXPECT_EQUAL(0, one.held);
        EXPECT_EQUAL(1000, one.tx_wire); /* kept from before it was watched */
        EXPECT_EQUAL(0, other.queued);
        EXPECT_EQUAL(20 + i, other.held);
        EXPECT_EQUAL(1001 + 30 * (i + 1), other.tx_wire);
    }
    arena_free(&setup.arena);
}

/* At every moment of a long run: rows are evenly spaced from 0 on, in order, with the values of
 * their time, and none is missing up to now. */
TEST(full_table_drops_every_second_row_and_doubles_interval)
{
    static struct setup setup;
    setup_init(&setup);
    for (int64_t step = 0; step < 20 * CAPACITY; step++) {
        setup.flow_bytes = (uint64_t)(step * INTERVAL);
        clock_run_until(&setup.clock, step * INTERVAL);
        picoseconds apart = setup.sampler.interval;
        EXPECT(setup.sampler.rows <= CAPACITY);
        EXPECT(step < CAPACITY || setup.sampler.rows > CAPACITY / 2);
        EXPECT_EQUAL(step * INTERVAL / apart + 1, setup.sampler.rows);
        for (uint32_t i = 0; i < setup.sampler.rows; i++) {
            EXPECT_EQUAL(i * apart, *row(&setup, i));
            EXPECT_EQUAL(i * apart, flow(&setup, i));
        }
    }
    EXPECT_EQUAL(32 * INTERVAL, setup.sampler.interval);
    arena_free(&setup.arena);
}

TEST(kept_rows_stay_where_they_were_written)
{
    static struct setup setup;
    setup_init(&setup);
    clock_run_until(&setup.clock, (CAPACITY - 1) * INTERVAL);
    const int64_t *places[CAPACITY];
    for (uint32_t i = 0; i < CAPACITY; i++)
        places[i] = row(&setup, i);
    clock_run_until(&setup.clock, CAPACITY * INTERVAL);
    EXPECT_EQUAL(CAPACITY / 2 + 1, setup.sampler.rows);
    for (uint32_t i = 0; i < CAPACITY / 2; i++)
        EXPECT(row(&setup, i) == places[2 * i]);
    arena_free(&setup.arena);
}

TEST(extra_row_does_not_move_the_next)
{
    static struct setup setup;
    setup_init(&setup);
    clock_run_until(&setup.clock, INTERVAL + INTERVAL / 3);
    sampler_take(&setup.sampler, setup.clock.now);
    EXPECT_EQUAL(INTERVAL + INTERVAL / 3, *row(&setup, 2));
    clock_run_until(&setup.clock, 2 * INTERVAL);
    EXPECT_EQUAL(2 * INTERVAL, *row(&setup, 3));
    arena_free(&setup.arena);
}

/* Two priorities are paused from half an interval on; one resumes an interval later, and the other
 * another interval later. No other event brings the gauge up to date. */
TEST(row_has_the_pause_up_to_its_own_time)
{
    static struct setup setup;
    setup_init(&setup);
    struct port *port = &setup.ports[1];
    struct pause pause = {.enable = 1 << 3 | 1 << 4, .time = {[3] = 0xFFFF, [4] = 0xFFFF}};
    clock_run_until(&setup.clock, INTERVAL / 2);
    pauses_obey(port, &pause, 0xFF, setup.clock.now);
    for (int resumed = 3; resumed <= 4; resumed++) {
        clock_run_until(&setup.clock, setup.clock.now + INTERVAL);
        pause = (struct pause){.enable = (uint8_t)(1 << resumed)};
        pauses_obey(port, &pause, 0xFF, setup.clock.now);
    }
    clock_run_until(&setup.clock, 4 * INTERVAL);
    static const int64_t halves[] = {0, 2, 5, 6, 6};
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT_EQUAL(halves[i] * INTERVAL / 2, gauges(&setup, i, 1).paused);
        EXPECT_EQUAL(0, gauges(&setup, i, 0).paused);
    }
    arena_free(&setup.arena);
}

MAIN(RUN(first_row_is_of_the_start_then_one_every_interval),
     RUN(rows_are_copies_of_gauges_and_flows_of_their_time),
     RUN(full_table_drops_every_second_row_and_doubles_interval),
     RUN(kept_rows_stay_where_they_were_written), RUN(extra_row_does_not_move_the_next),
     RUN(row_has_the_pause_up_to_its_own_time))
