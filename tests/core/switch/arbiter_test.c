/* Strict priority and deficit round robin, one pick at a time: shares at every moment, and what
 * becomes of a deficit when its queue is blocked, is empty, or waits for a strict one. */
#include "sim/rng.h"
#include "switch/arbiter.h"
#include "testbench.h"

enum { LONGEST = 9000, FRAMES = 64 };

struct setup {
    struct arbiter arbiter;
    struct deficits deficits;
    struct arbiter_config config;
    struct frame_queue queues[CLASSES];
    struct frame frames[CLASSES][FRAMES];
};

/* A queue of frames whose lengths lie between two limits, in a fixed random order. */
static void add_queue(struct setup *setup, uint8_t queue, uint32_t quantum, uint32_t shortest,
                      uint32_t longest)
{
    struct rng rng = {.state = queue};
    setup->config.quantum[queue] = quantum;
    for (int i = 0; i < FRAMES; i++) {
        struct frame *frame = &setup->frames[queue][i];
        frame->length = shortest + rng_u32(&rng) % (longest - shortest + 1);
        queue_push(&setup->queues[queue], frame);
    }
}

/* Queues whose frames have 1000 bytes; their quanta are in the order of the queues. */
static void setup_init(struct setup *setup, uint32_t count, const uint32_t *quanta)
{
    *setup = (struct setup){0};
    for (uint8_t queue = 0; queue < count; queue++)
        add_queue(setup, queue, quanta[queue], 1000, 1000);
}

/* Picks a queue. Its first frame goes to the end of the queue, which thus never becomes empty. */
static uint8_t serve(struct setup *setup, uint16_t sendable)
{
    uint8_t queue =
        arbiter_pick(&setup->arbiter, &setup->deficits, &setup->config, setup->queues, sendable);
    if (queue != ARBITER_NONE)
        queue_push(&setup->queues[queue], queue_pop(&setup->queues[queue]));
    return queue;
}

/* Whether the next picks are these queues, a digit each. */
static bool serves(struct setup *setup, uint16_t sendable, const char *queues)
{
    for (; *queues; queues++)
        if (serve(setup, sendable) != *queues - '0')
            return false;
    return true;
}

TEST(strict_queues_go_first_and_the_highest_of_them)
{
    static struct setup setup;
    setup_init(&setup, 10, (uint32_t[10]){[0] = 1000, [9] = 1000});
    setup.config.strict = 1 << 2 | 1 << 5;
    EXPECT_EQUAL(5, serve(&setup, 1 << 0 | 1 << 2 | 1 << 5 | 1 << 9));
    EXPECT_EQUAL(2, serve(&setup, 1 << 0 | 1 << 2 | 1 << 9));
    EXPECT_EQUAL(ARBITER_NONE, serve(&setup, 0));
}

/* The bound of the paper: between two queues that are never empty, the bytes sent for each byte of
 * quantum differ by less than a round and a frame of each. */
TEST(bytes_follow_quanta_at_every_moment_for_any_lengths)
{
    static struct setup setup;
    static const uint8_t queues[] = {0, 7, 15};
    double rounds[CLASSES] = {0};
    setup = (struct setup){0};
    add_queue(&setup, 0, 4000, 64, 200);
    add_queue(&setup, 7, LONGEST, 64, LONGEST);
    add_queue(&setup, 15, 500, LONGEST, LONGEST); /* saves for 18 rounds */
    for (int pick = 0; pick < 100000; pick++) {
        uint8_t queue = arbiter_pick(&setup.arbiter, &setup.deficits, &setup.config, setup.queues,
                                     1 << 0 | 1 << 7 | 1 << 15);
        struct frame *frame = queue_pop(&setup.queues[queue]);
        rounds[queue] += (double)frame->length / setup.config.quantum[queue];
        queue_push(&setup.queues[queue], frame);
        for (size_t i = 0; i < sizeof queues; i++)
            for (size_t j = 0; j < sizeof queues; j++) {
                uint8_t one = queues[i], other = queues[j];
                EXPECT(rounds[one] - rounds[other] <
                       1 + (double)LONGEST / setup.config.quantum[one] +
                           (double)LONGEST / setup.config.quantum[other]);
            }
    }
}

TEST(quantum_of_one_byte_still_serves_every_queue)
{
    static struct setup setup;
    setup_init(&setup, 3, (uint32_t[]){1, 1, 1});
    EXPECT(serves(&setup, 7, "012012"));
}

TEST(strict_frame_does_not_end_the_turn_of_another_queue)
{
    static struct setup setup;
    setup_init(&setup, 3, (uint32_t[]){3000, 1000, 1});
    setup.config.strict = 1 << 2;
    EXPECT(serves(&setup, 3, "0"));
    EXPECT(serves(&setup, 7, "222"));
    EXPECT(serves(&setup, 3, "0010001"));
}

/* Queue 0 has saved 600 bytes when it is blocked: the next 600 are enough for its frame. */
TEST(blocked_queue_keeps_its_deficit)
{
    static struct setup setup;
    setup_init(&setup, 3, (uint32_t[]){600, 1000, 1000});
    EXPECT(serves(&setup, 7, "1"));
    EXPECT(serves(&setup, 6, "212"));
    EXPECT(serves(&setup, 7, "0"));
}

/* Queue 0 leaves turns unused for rounds on end. */
TEST(blocked_queue_saves_nothing_for_later)
{
    static struct setup setup;
    setup_init(&setup, 3, (uint32_t[]){1000, 1000, 1000});
    EXPECT(serves(&setup, 6, "12121212"));
    EXPECT(serves(&setup, 7, "012012"));
}

/* As in blocked_queue_keeps_its_deficit, but the queue is empty meanwhile. */
TEST(empty_queue_loses_its_deficit)
{
    static struct setup setup;
    setup_init(&setup, 3, (uint32_t[]){600, 1000, 1000});
    EXPECT(serves(&setup, 7, "1"));
    struct frame_queue full = setup.queues[0];
    setup.queues[0] = (struct frame_queue){0};
    EXPECT(serves(&setup, 6, "212"));
    setup.queues[0] = full;
    EXPECT(serves(&setup, 7, "120"));
}

/* Queue 0 has 1500 - 1000 bytes left when it becomes empty, served alone. Its next frames need more
 * than a quantum, and the 500 bytes would be enough for the first. */
TEST(queue_that_is_emptied_alone_loses_its_deficit)
{
    static struct setup setup;
    setup_init(&setup, 2, (uint32_t[]){1500, 1000});
    EXPECT(serves(&setup, 3, "01"));
    EXPECT_EQUAL(500, setup.deficits.of[0]);
    setup.queues[0] = (struct frame_queue){0};
    queue_push(&setup.queues[0], &setup.frames[0][0]);
    EXPECT(serves(&setup, 1, "0"));
    setup.queues[0] = (struct frame_queue){0};
    add_queue(&setup, 0, 1500, 1600, 1600);
    EXPECT(serves(&setup, 2, "1"));
    EXPECT(serves(&setup, 3, "10"));
}

MAIN(RUN(strict_queues_go_first_and_the_highest_of_them),
     RUN(bytes_follow_quanta_at_every_moment_for_any_lengths),
     RUN(quantum_of_one_byte_still_serves_every_queue),
     RUN(strict_frame_does_not_end_the_turn_of_another_queue), RUN(blocked_queue_keeps_its_deficit),
     RUN(blocked_queue_saves_nothing_for_later), RUN(empty_queue_loses_its_deficit),
     RUN(queue_that_is_emptied_alone_loses_its_deficit))
