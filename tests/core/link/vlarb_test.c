/* VL arbitration, one pick at a time: when a turn, the high list's limit and an entry's weight
 * begin and end. */
#include "link/vlarb.h"
#include "testbench.h"

enum { ANY = 0x7FFF, UNIT = VLARB_WEIGHT_UNIT };

struct setup {
    struct vlarb arbiter;
    struct vlarb_tables tables;
};

/* A moment at which the first entry of each list has its turn, and the high list its whole limit:
 * nothing was there to send. */
static struct setup with(struct vlarb_list high, struct vlarb_list low, uint8_t limit)
{
    struct setup setup = {.tables = {.high = high, .low = low, .limit = limit}};
    setup.arbiter.high.entry = (uint8_t)(high.count ? high.count - 1 : 0);
    setup.arbiter.low.entry = (uint8_t)(low.count ? low.count - 1 : 0);
    EXPECT_EQUAL(VL_NONE, vlarb_pick(&setup.arbiter, &setup.tables, 0));
    return setup;
}

#define LIST(...)                                                                                  \
    ((struct vlarb_list){.entries = {__VA_ARGS__},                                                 \
                         .count = sizeof(struct vlarb_entry[]){__VA_ARGS__} /                      \
                                  sizeof(struct vlarb_entry)})
#define NO_LIST ((struct vlarb_list){0})

/* Whether the next packets, of `bytes` each, leave on these lanes, a hexadecimal digit each. */
static bool serves(struct setup *setup, uint16_t sendable, uint32_t bytes, const char *lanes)
{
    for (; *lanes; lanes++) {
        const char digit[] = {*lanes, 0};
        if (vlarb_pick(&setup->arbiter, &setup->tables, sendable) != strtol(digit, NULL, 16))
            return false;
        vlarb_sent(&setup->arbiter, bytes);
    }
    return true;
}

TEST(turn_ends_with_the_packet_that_uses_up_the_weight)
{
    static const struct {
        uint32_t bytes;
        const char *lanes;
    } cases[] = {{UNIT - 1, "00011110001111"},
                 {UNIT, "0011100111"},
                 {UNIT + 1, "0011100111"},
                 {2 * UNIT, "011011"},
                 {3 * UNIT, "0101"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup setup = with(NO_LIST, LIST({0, 2}, {1, 3}), 0);
        EXPECT(serves(&setup, ANY, cases[i].bytes, cases[i].lanes));
    }
}

TEST(entry_without_a_packet_loses_the_rest_of_its_turn)
{
    struct setup setup = with(NO_LIST, LIST({0, 4}, {1, 4}), 0);
    EXPECT(serves(&setup, ANY, UNIT, "00"));
    EXPECT(serves(&setup, 1 << 1, UNIT, "1"));
    EXPECT(serves(&setup, ANY, UNIT, "11100001111"));
}

/* A port that finds nothing to send asks all the same: entry 0 loses its turn there. */
TEST(turn_is_lost_too_while_no_lane_has_a_packet)
{
    struct setup setup = with(NO_LIST, LIST({0, 4}, {1, 4}), 0);
    EXPECT(serves(&setup, ANY, UNIT, "0"));
    EXPECT_EQUAL(VL_NONE, vlarb_pick(&setup.arbiter, &setup.tables, 0));
    EXPECT(serves(&setup, ANY, UNIT, "11110000"));
}

TEST(lone_entry_goes_on_after_its_weight)
{
    struct setup setup = with(NO_LIST, LIST({3, 1}), 0);
    EXPECT(serves(&setup, ANY, 2 * UNIT, "333"));
}

TEST(entry_of_weight_0_is_skipped)
{
    struct setup setup = with(LIST({0, 0}), LIST({1, 1}, {2, 0}, {3, 1}), VLARB_UNLIMITED);
    EXPECT(serves(&setup, ANY, UNIT, "1313"));
    EXPECT_EQUAL(VL_NONE, vlarb_pick(&setup.arbiter, &setup.tables, 1 << 0 | 1 << 2));
}

TEST(lane_may_be_in_one_list_several_times)
{
    struct setup setup = with(NO_LIST, LIST({0, 1}, {1, 1}, {0, 2}, {2, 1}), 0);
    EXPECT(serves(&setup, ANY, UNIT, "0100201002"));
}

/* Lane 0 sends in the turn of its high entry, then in that of its low one. */
TEST(lane_in_both_lists_has_two_turns)
{
    struct setup setup = with(LIST({0, 255}), LIST({0, 1}, {1, 1}), 0);
    EXPECT(serves(&setup, ANY, UNIT, "00010001"));
}

TEST(full_list_of_64_entries_serves_each)
{
    struct setup setup = with(NO_LIST, NO_LIST, 0);
    for (uint8_t entry = 0; entry < 64; entry++)
        setup.tables.low.entries[entry] = (struct vlarb_entry){entry == 63, 1};
    setup.tables.low.count = 64;
    for (int round = 0; round < 2; round++) {
        int of_last = 0;
        for (int pick = 0; pick < 64; pick++) {
            of_last += vlarb_pick(&setup.arbiter, &setup.tables, ANY) == 1;
            vlarb_sent(&setup.arbiter, UNIT);
        }
        EXPECT_EQUAL(1, of_last);
    }
}

/* At limit 0 one packet, however short; at limit n the packet that completes n * 4096 bytes is the
 * last. */
TEST(high_list_pauses_after_its_limit_for_one_low_packet)
{
    static const struct {
        uint8_t limit;
        uint32_t bytes;
        const char *lanes;
    } cases[] = {{0, 1, "010101"},      {0, 4096, "010101"},   {1, 4096, "010101"},
                 {1, 4095, "001001"},   {1, 1024, "00001000"}, {2, 4096, "001001"},
                 {3, 4097, "00010001"}, {3, 12288, "0101"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup setup = with(LIST({0, 1}), LIST({1, 255}), cases[i].limit);
        EXPECT(serves(&setup, ANY, cases[i].bytes, cases[i].lanes));
    }
}

TEST(limit_254_is_finite_and_255_is_not)
{
    enum { BYTES = 254 * VLARB_LIMIT_UNIT };
    struct setup finite = with(LIST({0, 1}), LIST({1, 1}), 254);
    EXPECT(serves(&finite, ANY, BYTES, "0101"));
    struct setup unlimited = with(LIST({0, 1}), LIST({1, 1}), VLARB_UNLIMITED);
    for (int packet = 0; packet < 100000; packet++)
        EXPECT(serves(&unlimited, ANY, BYTES, "0"));
    EXPECT(serves(&unlimited, 1 << 1, BYTES, "1"));
}

TEST(low_list_with_nothing_to_send_leaves_the_port_to_the_high)
{
    struct setup setup = with(LIST({0, 1}, {2, 1}), LIST({1, 1}), 0);
    EXPECT(serves(&setup, 1 << 0 | 1 << 2, UNIT, "0202"));
}

/* The high list has sent three quarters of its limit when it has nothing more for a while. */
TEST(limit_begins_again_once_the_low_list_was_served)
{
    struct setup setup = with(LIST({0, 255}), LIST({1, 255}), 1);
    EXPECT(serves(&setup, ANY, 1024, "000"));
    EXPECT(serves(&setup, 1 << 1, 1024, "1"));
    EXPECT(serves(&setup, ANY, 1024, "000010000"));
}

TEST(management_packets_come_first_and_use_up_no_limit)
{
    struct setup setup = with(LIST({0, 255}), LIST({1, 255}), 1);
    EXPECT(serves(&setup, ANY, 1024, "00"));
    EXPECT(serves(&setup, 0xFFFF, 4096, "FFF"));
    EXPECT(serves(&setup, ANY, 1024, "001"));
}

TEST(management_packets_use_up_no_weight)
{
    struct setup setup = with(NO_LIST, LIST({0, 4}, {1, 4}), 0);
    EXPECT(serves(&setup, ANY, UNIT, "00"));
    EXPECT(serves(&setup, 1 << VL_MANAGEMENT | 3, 100 * UNIT, "FF"));
    EXPECT(serves(&setup, ANY, UNIT, "001"));
}

TEST(lane_that_no_list_has_is_never_served)
{
    struct setup setup = with(LIST({0, 1}), LIST({1, 1}), 0);
    EXPECT_EQUAL(VL_NONE, vlarb_pick(&setup.arbiter, &setup.tables, ANY & ~3));
    vlarb_sent(&setup.arbiter, UNIT);
    EXPECT(serves(&setup, ANY, UNIT, "01"));
}

TEST(high_list_is_served_first_from_the_start)
{
    struct setup setup = {.tables = {.high = LIST({0, 1}), .low = LIST({1, 1}), .limit = 255}};
    vlarb_init(&setup.arbiter, &setup.tables);
    EXPECT(serves(&setup, ANY, UNIT, "000"));
}

MAIN(RUN(turn_ends_with_the_packet_that_uses_up_the_weight),
     RUN(entry_without_a_packet_loses_the_rest_of_its_turn),
     RUN(turn_is_lost_too_while_no_lane_has_a_packet), RUN(lone_entry_goes_on_after_its_weight),
     RUN(entry_of_weight_0_is_skipped), RUN(lane_may_be_in_one_list_several_times),
     RUN(lane_in_both_lists_has_two_turns), RUN(full_list_of_64_entries_serves_each),
     RUN(high_list_pauses_after_its_limit_for_one_low_packet),
     RUN(limit_254_is_finite_and_255_is_not),
     RUN(low_list_with_nothing_to_send_leaves_the_port_to_the_high),
     RUN(limit_begins_again_once_the_low_list_was_served),
     RUN(management_packets_come_first_and_use_up_no_limit),
     RUN(management_packets_use_up_no_weight), RUN(lane_that_no_list_has_is_never_served),
     RUN(high_list_is_served_first_from_the_start))
