/* A port applies its disciplines in the order of their phases, each to its own queues, and refuses
 * what the registry does not have. */
#include <string.h>

#include "switch/port_disciplines.h"
#include "testbench.h"

static const uint64_t packets = 16, bytes = 4096;
static const struct parameter limit = {"packets", &packets, 1, NULL},
                              room = {"bytes", &bytes, 1, NULL},
                              unknown = {"unknown", &bytes, 1, NULL};

static const struct queue_discipline_config wred = {.name = "wred", .queues = 1 << 3},
                                            packet_limit = {.name = "packet-limit",
                                                            .queues = 1 << 15,
                                                            .parameters = &limit,
                                                            .parameter_count = 1},
                                            tail_drop = {.name = "tail-drop",
                                                         .queues = 0xFF,
                                                         .parameters = &room,
                                                         .parameter_count = 1};

static bool made(struct switch_port *out, const struct queue_discipline_config *configs,
                 uint32_t count)
{
    struct arena arena = {0};
    *out = (struct switch_port){0};
    bool made = disciplines_init(out, &arena, configs, count);
    arena_free(&arena);
    return made;
}

TEST(drops_come_before_marks_whatever_the_settings_order)
{
    static struct switch_port out;
    const struct queue_discipline_config configs[] = {wred, packet_limit, tail_drop};
    EXPECT(made(&out, configs, 3));
    EXPECT_EQUAL(0, strcmp("packet-limit", out.discipline[0].kind->name));
    EXPECT_EQUAL(0, strcmp("tail-drop", out.discipline[1].kind->name));
    EXPECT_EQUAL(0, strcmp("wred", out.discipline[2].kind->name));
}

TEST(each_queue_has_its_own_disciplines)
{
    static struct switch_port out;
    const struct queue_discipline_config configs[] = {wred, packet_limit, tail_drop};
    EXPECT(made(&out, configs, 3));
    EXPECT_EQUAL(1 << 1 | 1 << 2, out.disciplines_of[3]);
    EXPECT_EQUAL(1 << 1, out.disciplines_of[7]);
    EXPECT_EQUAL(0, out.disciplines_of[8]);
    EXPECT_EQUAL(1 << 0, out.disciplines_of[15]);
    EXPECT_EQUAL(1 << 1, out.only_lossy); /* tail drop never drops a lossless frame */
}

TEST(state_is_found_by_the_disciplines_name)
{
    static struct switch_port out;
    EXPECT(made(&out, &wred, 1));
    EXPECT(discipline_state(&out, "wred") == out.discipline[0].state);
    EXPECT(!discipline_state(&out, "fecn"));
}

TEST(unknown_names_are_refused)
{
    static struct switch_port out;
    const struct queue_discipline_config no_such = {.name = "shorten", .queues = 1};
    const struct queue_discipline_config no_such_parameter = {
        .name = "wred", .queues = 1, .parameters = &unknown, .parameter_count = 1};
    const uint64_t many[17] = {0};
    const struct parameter too_many = {"kmin_bytes", many, 17, NULL};
    const struct queue_discipline_config too_many_values = {
        .name = "wred", .queues = 1, .parameters = &too_many, .parameter_count = 1};
    EXPECT(!made(&out, &no_such, 1));
    EXPECT(!made(&out, &no_such_parameter, 1));
    EXPECT(!made(&out, &too_many_values, 1));
}

MAIN(RUN(drops_come_before_marks_whatever_the_settings_order),
     RUN(each_queue_has_its_own_disciplines), RUN(state_is_found_by_the_disciplines_name),
     RUN(unknown_names_are_refused))
