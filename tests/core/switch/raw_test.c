/* Raw packets (LNH 0 and 1) in an InfiniBand switch: they have no transport header, so the switch
 * neither reads nor writes fields of one. */
#include <string.h>

#include "switch/pkey.h"
#include "switch/port_disciplines.h"
#include "testbench.h"

enum { PACKET = 60, KEY = 0x1234 };

static const uint8_t raw_lnhs[] = {0, 1};

static struct frame packet(uint8_t bytes[PACKET], uint8_t lnh)
{
    memset(bytes, 0, PACKET);
    bytes[1] = lnh;
    return (struct frame){.kind = FRAME_IB, .bytes = bytes, .length = PACKET, .stored = PACKET};
}

TEST(raw_packets_are_never_marked)
{
    const uint64_t yes = 1;
    const struct parameter marks_as_victim = {"marks_as_victim", &yes, 1, NULL};
    const struct queue_discipline_config config = {
        .name = "fecn", .queues = 1, .parameters = &marks_as_victim, .parameter_count = 1};
    struct arena arena = {0};
    static struct switch_port_counters counters;
    static struct switch_port out = {.port = {.framing = FRAMING_INFINIBAND},
                                     .counters = &counters};
    EXPECT(disciplines_init(&out, &arena, &config, 1));
    for (size_t i = 0; i < sizeof raw_lnhs; i++) {
        uint8_t bytes[PACKET], before[PACKET];
        struct frame frame = packet(bytes, raw_lnhs[i]);
        memcpy(before, bytes, PACKET);
        EXPECT_EQUAL(QUEUE_TAKES,
                     out.discipline[0].kind->join(out.discipline[0].state, &out, 0, &frame));
        EXPECT_EQUAL(0, counters.fecn_marked[0]);
        EXPECT_EQUAL(0, memcmp(before, bytes, PACKET));
    }
    arena_free(&arena);
}

TEST(raw_packets_have_no_p_key_to_check)
{
    const struct pkey_filter filter = {.inbound = true, .count = 1, .keys = {KEY}};
    uint8_t bytes[PACKET];
    for (size_t i = 0; i < sizeof raw_lnhs; i++) {
        struct frame raw = packet(bytes, raw_lnhs[i]);
        EXPECT(pkey_passes(&filter, &raw));
    }
    struct frame local = packet(bytes, LNH_IBA_LOCAL);
    EXPECT(!pkey_passes(&filter, &local));
}

MAIN(RUN(raw_packets_are_never_marked), RUN(raw_packets_have_no_p_key_to_check))
