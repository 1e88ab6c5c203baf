/* The packet memory of a switch to the byte: which part a packet goes into, what is refused, the
 * order of release, and where XOFF and XON begin. */
#include "switch/pfc.h"

#include <string.h>

#include "sim/rng.h"
#include "testbench.h"

enum { POOL = 10000, RESERVED = 1000, XOFF = 3000, HEADROOM = 2000 };

static const struct pfc_config lossless = {
    .xoff = {.bytes = XOFF}, .xon_below_xoff = 1000, .headroom_bytes = HEADROOM};
static const struct buffer empty = {.shared_size = POOL, .reserved_bytes = RESERVED},
                           without_reserve = {.shared_size = POOL};

/* Whether the group has these bytes of each part. */
static bool holds(const struct priority_group *group, uint32_t reserved, uint32_t shared,
                  uint32_t headroom)
{
    return group->reserved == reserved && group->shared == shared && group->headroom == headroom;
}

TEST(packet_takes_reserved_memory_if_all_of_it_fits)
{
    struct buffer buffer = empty;
    struct priority_group group = {0};
    EXPECT(buffer_charge(&buffer, &group, NULL, 600) && holds(&group, 600, 0, 0));
    EXPECT(buffer_charge(&buffer, &group, NULL, 401) && holds(&group, 600, 401, 0));
    EXPECT(buffer_charge(&buffer, &group, NULL, 400) && holds(&group, RESERVED, 401, 0));
    EXPECT_EQUAL(401, buffer.shared_used);
}

TEST(lossy_class_may_fill_the_pool_but_no_headroom)
{
    struct buffer buffer = without_reserve;
    struct priority_group group = {0};
    EXPECT(buffer_charge(&buffer, &group, NULL, POOL));
    EXPECT(!buffer_charge(&buffer, &group, NULL, 1));
    EXPECT(holds(&group, 0, POOL, 0));
}

TEST(packet_beyond_xoff_goes_into_headroom_whole)
{
    struct buffer buffer = without_reserve;
    struct priority_group group = {0};
    EXPECT(buffer_charge(&buffer, &group, &lossless, XOFF - 1));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 2) && holds(&group, 0, XOFF - 1, 2));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 1) && holds(&group, 0, XOFF, 2));
    EXPECT_EQUAL(XOFF, buffer.shared_used);
}

TEST(full_pool_sends_a_lossless_packet_into_headroom)
{
    struct buffer buffer = without_reserve;
    struct priority_group lossy = {0}, group = {0};
    EXPECT(buffer_charge(&buffer, &lossy, NULL, POOL - 99));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 100) && holds(&group, 0, 0, 100));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 99) && holds(&group, 0, 99, 100));
}

TEST(refusal_charges_nothing)
{
    struct buffer buffer = empty;
    struct priority_group lossy = {0}, group = {.reserved = RESERVED - 1, .headroom = HEADROOM - 9};
    EXPECT(buffer_charge(&buffer, &lossy, NULL, POOL - 5));
    struct buffer buffer_before = buffer;
    struct priority_group lossy_before = lossy, group_before = group;
    EXPECT(!buffer_charge(&buffer, &lossy, NULL, RESERVED + 1));
    EXPECT(!buffer_charge(&buffer, &group, &lossless, 10));
    EXPECT_EQUAL(0, memcmp(&buffer_before, &buffer, sizeof buffer));
    EXPECT_EQUAL(0, memcmp(&lossy_before, &lossy, sizeof lossy));
    EXPECT_EQUAL(0, memcmp(&group_before, &group, sizeof group));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 9)); /* the last bytes of the headroom */
}

TEST(alpha_applies_to_the_free_part_of_the_pool)
{
    struct buffer buffer = without_reserve;
    const struct threshold eighth = {.alpha_1024 = 128}, twice = {.alpha_1024 = 2048};
    EXPECT_EQUAL(POOL / 8, threshold_now(&eighth, &buffer));
    buffer.shared_used = POOL - 1007;
    EXPECT_EQUAL(125, threshold_now(&eighth, &buffer)); /* 125.875 */
    EXPECT_EQUAL(2014, threshold_now(&twice, &buffer));
    buffer.shared_used = POOL;
    EXPECT_EQUAL(0, threshold_now(&twice, &buffer));
}

TEST(threshold_in_bytes_does_not_depend_on_the_pool)
{
    struct buffer buffer = {.shared_size = POOL, .shared_used = POOL - 1};
    const struct threshold fixed = {.bytes = XOFF, .alpha_1024 = 128};
    EXPECT_EQUAL(XOFF, threshold_now(&fixed, &buffer));
}

TEST(release_empties_headroom_then_pool_then_reserve)
{
    struct buffer buffer = {.shared_size = POOL, .shared_used = 700};
    struct priority_group group = {.reserved = 900, .shared = 500, .headroom = 300};
    buffer_release(&buffer, &group, 200);
    EXPECT(holds(&group, 900, 500, 100));
    buffer_release(&buffer, &group, 200); /* half of each */
    EXPECT(holds(&group, 900, 400, 0));
    EXPECT_EQUAL(600, buffer.shared_used);
    buffer_release(&buffer, &group, 150);
    EXPECT(holds(&group, 900, 250, 0));
    buffer_release(&buffer, &group, 400);
    EXPECT(holds(&group, 750, 0, 0));
    EXPECT_EQUAL(200, buffer.shared_used); /* another group's */
}

TEST(xoff_is_wanted_exactly_while_headroom_is_in_use)
{
    struct buffer buffer = without_reserve;
    struct priority_group group = {0};
    EXPECT(buffer_charge(&buffer, &group, &lossless, XOFF));
    EXPECT(!priority_group_wants_xoff(&group));
    EXPECT(buffer_charge(&buffer, &group, &lossless, 1));
    EXPECT(priority_group_wants_xoff(&group));
    buffer_release(&buffer, &group, 1);
    EXPECT(!priority_group_wants_xoff(&group));
}

TEST(xon_is_wanted_from_xon_bytes_down_without_headroom)
{
    const uint32_t xon = XOFF - lossless.xon_below_xoff;
    struct priority_group group = {.reserved = RESERVED, .shared = xon + 1};
    EXPECT(!priority_group_wants_xon(&group, &lossless, &empty));
    group.shared = xon;
    EXPECT(priority_group_wants_xon(&group, &lossless, &empty));
    group.headroom = 1;
    EXPECT(!priority_group_wants_xon(&group, &lossless, &empty));
}

/* Others have filled the pool, so that alpha's threshold is less than xon's distance from it. */
TEST(group_without_pool_memory_wants_xon_at_any_threshold)
{
    const struct buffer full = {.shared_size = POOL, .shared_used = POOL};
    const struct pfc_config dynamic = {.xoff = {.alpha_1024 = 128}, .xon_below_xoff = 1000};
    struct priority_group group = {.shared = 1};
    EXPECT(!priority_group_wants_xon(&group, &dynamic, &full));
    group.shared = 0;
    EXPECT(priority_group_wants_xon(&group, &dynamic, &full));
}

/* Packets of four groups, every other one lossless, arrive and leave at random. */
TEST(pool_use_is_the_sum_over_all_groups)
{
    enum { GROUPS = 4, PACKETS = 16, STEPS = 20000 };
    struct rng rng = {.state = 1};
    struct buffer buffer = empty;
    const struct pfc_config dynamic = {.xoff = {.alpha_1024 = 512}, .headroom_bytes = HEADROOM};
    struct priority_group groups[GROUPS] = {0};
    uint32_t packets[GROUPS][PACKETS] = {0}, refused = 0;
    for (int step = 0; step < STEPS; step++) {
        uint32_t which = rng_u32(&rng) % GROUPS;
        uint32_t *packet = &packets[which][rng_u32(&rng) % PACKETS];
        if (*packet) {
            buffer_release(&buffer, &groups[which], *packet);
            *packet = 0;
        } else {
            uint32_t bytes = 1 + rng_u32(&rng) % 1500;
            if (buffer_charge(&buffer, &groups[which], which % 2 ? &dynamic : NULL, bytes))
                *packet = bytes;
            else
                refused++;
        }
        uint64_t shared = 0, held = 0, charged = 0;
        for (int i = 0; i < GROUPS; i++) {
            shared += groups[i].shared;
            held += priority_group_held(&groups[i]);
            EXPECT(groups[i].reserved <= RESERVED);
            EXPECT(groups[i].headroom <= (i % 2 ? HEADROOM : 0));
            for (int j = 0; j < PACKETS; j++)
                charged += packets[i][j];
        }
        EXPECT_EQUAL(charged, held);
        EXPECT_EQUAL(shared, buffer.shared_used);
        EXPECT(shared <= POOL);
    }
    EXPECT(refused > 0);
}

MAIN(RUN(packet_takes_reserved_memory_if_all_of_it_fits),
     RUN(lossy_class_may_fill_the_pool_but_no_headroom),
     RUN(packet_beyond_xoff_goes_into_headroom_whole),
     RUN(full_pool_sends_a_lossless_packet_into_headroom), RUN(refusal_charges_nothing),
     RUN(alpha_applies_to_the_free_part_of_the_pool),
     RUN(threshold_in_bytes_does_not_depend_on_the_pool),
     RUN(release_empties_headroom_then_pool_then_reserve),
     RUN(xoff_is_wanted_exactly_while_headroom_is_in_use),
     RUN(xon_is_wanted_from_xon_bytes_down_without_headroom),
     RUN(group_without_pool_memory_wants_xon_at_any_threshold),
     RUN(pool_use_is_the_sum_over_all_groups))
