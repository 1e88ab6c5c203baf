/* Parts of a fabric: what they send each other, when it is opened, and where frames go back to. */
#include "sim/part.h"

#include "testbench.h"

enum { PARTS = 3, FRAMES = 8 };

struct setup {
    struct arena arena;
    struct part parts[PARTS];
    struct part *list[PARTS];
};

/* Which mails were opened: their numbers, in order. */
static int opened[16], opened_count;

static void note(const struct mail *mail)
{
    opened[opened_count++] = *(const int *)mail->what;
}

static void setup_init(struct setup *setup)
{
    *setup = (struct setup){0};
    opened_count = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        struct part *part = setup->list[i] = &setup->parts[i];
        EXPECT(part_init(part, i, PARTS));
        EXPECT(frame_pool_init(&part->pool, &setup->arena, FRAMES, FRAMES, FRAME_MAX));
        EXPECT(frame_pool_join(&part->pool, &setup->arena, i, PARTS));
    }
}

static void setup_free(struct setup *setup)
{
    for (uint32_t i = 0; i < PARTS; i++)
        part_free(&setup->parts[i]);
    arena_free(&setup->arena);
}

static void run_window(struct setup *setup, picoseconds until)
{
    for (uint32_t i = 0; i < PARTS; i++)
        part_run(&setup->parts[i], setup->list, until);
}

static const struct mail_kind noted = {.open = note};

static void post(struct setup *setup, uint32_t from, uint32_t to, const int *number, picoseconds at)
{
    part_post(&setup->parts[from], &setup->parts[to],
              (struct mail){.kind = &noted, .what = (void *)number, .at = at});
}

TEST(mail_is_opened_in_the_next_window_sender_by_sender)
{
    static const int numbers[] = {0, 1, 2, 3};
    static struct setup setup;
    setup_init(&setup);
    post(&setup, 2, 0, &numbers[2], NEVER);
    post(&setup, 1, 0, &numbers[0], NEVER);
    post(&setup, 1, 0, &numbers[1], NEVER);
    EXPECT_EQUAL(0, opened_count);
    run_window(&setup, 100);
    EXPECT_EQUAL(3, opened_count);
    for (int i = 0; i < opened_count; i++)
        EXPECT_EQUAL(i, opened[i]);
    run_window(&setup, 200);
    EXPECT_EQUAL(3, opened_count);
    setup_free(&setup);
}

/* A part that runs later in the same window does not see what one before it has posted. */
static struct setup *posting;

static void post_more(struct timer *timer, picoseconds now)
{
    static const int number = 7;
    (void)timer;
    post(posting, 0, 1, &number, now + 50);
}

TEST(mail_of_a_window_waits_for_the_next)
{
    static struct setup setup;
    struct timer timer;
    setup_init(&setup);
    posting = &setup;
    timer_init(&timer, post_more);
    timer_set(&setup.parts[0].clock, &timer, 10);
    run_window(&setup, 59);
    EXPECT_EQUAL(0, opened_count);
    EXPECT_EQUAL(60, part_next_event(&setup.parts[0]));
    run_window(&setup, 60);
    EXPECT_EQUAL(1, opened_count);
    EXPECT_EQUAL(NEVER, part_next_event(&setup.parts[0]));
    setup_free(&setup);
}

TEST(frames_freed_by_another_part_come_back)
{
    static struct setup setup;
    setup_init(&setup);
    struct frame_pool *home = &setup.parts[0].pool, *other = &setup.parts[1].pool;
    for (int round = 0; round < 3; round++) {
        struct frame *frames[2 * FRAMES];
        for (int i = 0; i < FRAMES; i++) {
            frames[i] = frame_new(home, FRAME_ETHERNET, SMALL_FRAME);
            frames[FRAMES + i] = frame_new(home, FRAME_ETHERNET, FRAME_MAX);
        }
        EXPECT(!frame_new(home, FRAME_ETHERNET, FRAME_MAX));
        for (int i = 0; i < 2 * FRAMES; i++) {
            EXPECT(frames[i]);
            frame_free(other, frames[i]);
        }
        EXPECT_EQUAL(2 * FRAMES, home->in_use);
        EXPECT_EQUAL(2 * FRAMES, frame_pool_returned(other, PARTS));
        run_window(&setup, home->exhausted * 100);
        EXPECT_EQUAL(0, home->in_use);
        EXPECT_EQUAL(0, frame_pool_returned(other, PARTS));
    }
    EXPECT_EQUAL(0, other->in_use);
    setup_free(&setup);
}

MAIN(RUN(mail_is_opened_in_the_next_window_sender_by_sender),
     RUN(mail_of_a_window_waits_for_the_next), RUN(frames_freed_by_another_part_come_back))
