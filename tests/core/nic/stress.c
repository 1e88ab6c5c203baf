/* All operations at once, both ways, over a wire that loses, repeats, reorders and
 * damages packets. Exits with 1 and an explanation unless every byte is correct, no
 * other memory has changed, every completion came once and in order, and all frames
 * are back in the pool.
 *
 *     stress FRAMING RECOVERY SEED DROP TWICE HOLD DAMAGE MESSAGES LENGTH MTU ACK_EVERY WINDOW
 *
 * FRAMING is 0 (RoCEv2) or 1 (InfiniBand), fates are in thousandths of the packets,
 * LENGTH is the length of the longest message. */
#include <string.h>

#include "testbench.h"

enum { ARGUMENTS = 12, MESSAGES_MAX = 64, GAP = 13, COUNTER = 0, FIRST_FREE = 64, RESULT = 8 };
enum { CHANCES = 4 };

/* A message and its expected result. */
struct work {
    struct test_wqe wqe;
    struct receive receive;
    uint32_t from, to, length;
    int side;
    bool takes_receive;
};

struct stress {
    struct bench bench;
    uint32_t chance[CHANCES]; /* per 1000 packets: DROP, TWICE, HOLD, DAMAGE */
    struct work work[2][MESSAGES_MAX];
    uint32_t messages, longest;
    uint32_t completed[2], received[2], adds[2];
    uint32_t used[2]; /* bytes used of each sink */
};

static struct stress *current;

static uint32_t below(uint32_t bound)
{
    return rng_u32(&current->bench.rng) % bound;
}

static enum fate fate_of(struct bench *bench, const struct packet_record *packet)
{
    static const enum fate fates[CHANCES] = {DROP, TWICE, HOLD, DAMAGE};
    (void)bench;
    (void)packet;
    uint32_t draw = below(1000);
    for (int i = 0; i < CHANCES; i++) {
        if (draw < current->chance[i])
            return fates[i];
        draw -= current->chance[i];
    }
    return PASS;
}

/* ---- completions ------------------------------------------------------------------- */

static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    (void)message;
    (void)bytes;
    (void)all;
    (void)now;
}

static void completed(struct message *message, picoseconds now)
{
    struct test_wqe *wqe = container_of(message, struct test_wqe, message);
    struct work *work = container_of(wqe, struct work, wqe);
    (void)now;
    EXPECT_EQUAL(STATUS_SUCCESS, message->record->status);
    EXPECT(work == &current->work[work->side][current->completed[work->side]]);
    current->completed[work->side]++;
}

static void received(struct receive *receive, picoseconds now)
{
    struct work *work = container_of(receive, struct work, receive);
    (void)now;
    EXPECT_EQUAL(STATUS_SUCCESS, receive->status);
    enum verb verb = work->wqe.message.verb;
    EXPECT_EQUAL(verb == VERB_SEND_IMM || verb == VERB_WRITE_IMM, receive->has_immediate);
    EXPECT_EQUAL(verb == VERB_SEND_INV, receive->has_invalidated);
    EXPECT_EQUAL(work->length, receive->received_bytes);
    if (verb != VERB_SEND)
        EXPECT_EQUAL(work->wqe.message.immediate, receive->immediate);
    current->received[work->side]++;
}

static const struct message_handler handler = {.delivered = delivered, .completed = completed};

/* ---- posting ------------------------------------------------------------------------- */

static enum verb random_verb(void)
{
    static const enum verb verbs[] = {VERB_SEND,  VERB_SEND_IMM, VERB_SEND_INV,
                                      VERB_WRITE, VERB_WRITE,    VERB_WRITE_IMM,
                                      VERB_READ,  VERB_CMP_SWAP, VERB_FETCH_ADD};
    return verbs[below(sizeof verbs / sizeof *verbs)];
}

static uint32_t random_length(void)
{
    return below(8) == 0 ? 0 : below(current->longest + 1);
}

/* Each message has its own bytes of a sink: the other NIC's, or its own NIC's for a fetch. */
static uint32_t place(int sink, uint32_t length)
{
    uint32_t to = current->used[sink];
    current->used[sink] += length + GAP;
    EXPECT(current->used[sink] <= MEMORY);
    return to;
}

static void post_atomic(struct work *work, enum verb verb)
{
    struct message *message = &work->wqe.message;
    uint32_t *adds = &current->adds[work->side];
    work->length = RESULT;
    work->to = place(work->side, RESULT);
    message->compare = *adds;
    message->swap_add = verb == VERB_FETCH_ADD ? 1 : *adds + 1;
    work->from = *adds;
    ++*adds;
    bench_post(&current->bench, current->bench.qp[work->side], &work->wqe, verb, COUNTER, work->to,
               RESULT);
}

static void post(int side, uint32_t index)
{
    struct bench *bench = &current->bench;
    struct work *work = &current->work[side][index];
    enum verb verb = random_verb();
    *work =
        (struct work){.side = side, .wqe.message = {.handler = &handler, .verb = (uint8_t)verb}};
    uint8_t bytes[1];
    work->wqe.message.immediate = verb == VERB_SEND_INV
                                      ? nic_add_region(&bench->nic[!side], 0, 0, 0, 0, bytes)
                                      : rng_u32(&bench->rng);
    if (verb > VERB_READ) {
        post_atomic(work, verb);
        return;
    }
    work->length = random_length();
    work->from = below(MEMORY - work->length);
    work->to = place(verb == VERB_READ ? side : !side, work->length);
    work->takes_receive = verb_takes_receive(work->wqe.message.verb);
    if (work->takes_receive) {
        bench_receive(bench, bench->qp[!side], &work->receive,
                      verb == VERB_WRITE_IMM ? 0 : work->to,
                      verb == VERB_WRITE_IMM ? 0 : work->length);
        work->receive.completed = received;
    }
    bench_post(bench, bench->qp[side], &work->wqe, verb, work->from, work->to, work->length);
}

/* ---- checking -------------------------------------------------------------------------- */

static void expect_atomic(uint8_t *image, const struct work *work)
{
    uint64_t original = work->from;
    memcpy(image + work->to, &original, sizeof original);
}

/* The expected bytes of the sinks, guards included. */
static void expect_memory(int sink)
{
    static uint8_t image[MEMORY];
    const struct bench *bench = &current->bench;
    memset(image, GUARD_BYTE, sizeof image);
    uint64_t counter = current->adds[!sink];
    memcpy(image + COUNTER, &counter, sizeof counter);
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < current->messages; i++) {
            const struct work *work = &current->work[side][i];
            enum verb verb = work->wqe.message.verb;
            bool fetches = verb >= VERB_READ;
            if ((fetches ? side : !side) != sink)
                continue;
            if (verb > VERB_READ)
                expect_atomic(image, work);
            else
                memcpy(image + work->to, bench->source[fetches ? !side : side] + work->from,
                       work->length);
        }
    for (uint32_t i = 0; i < MEMORY; i++)
        if (image[i] != bench->sink[sink][i]) {
            fprintf(stderr, "sink %d byte %u: expected %02x, got %02x\n", sink, i, image[i],
                    bench->sink[sink][i]);
            exit(1);
        }
}

static void expect_completions(int side)
{
    uint32_t receives = 0;
    for (uint32_t i = 0; i < current->messages; i++) {
        const struct work *work = &current->work[side][i];
        uint32_t key = work->wqe.message.immediate;
        if (work->wqe.message.verb == VERB_SEND_INV)
            EXPECT(key && !nic_invalidate(&current->bench.nic[!side], 0, key));
        EXPECT_EQUAL(STATUS_SUCCESS, work->wqe.record.status);
        EXPECT_EQUAL(work->length, work->wqe.record.delivered_bytes);
        receives += work->takes_receive;
    }
    EXPECT_EQUAL(current->messages, current->completed[side]);
    EXPECT_EQUAL(receives, current->received[side]);
}

static void set_counters(void)
{
    for (int sink = 0; sink < 2; sink++) {
        memset(current->bench.sink[sink] + COUNTER, 0, RESULT);
        current->used[sink] = FIRST_FREE;
    }
}

static bool is_over(void)
{
    return current->completed[0] == current->messages && current->completed[1] == current->messages;
}

static uint32_t updates_on(const struct line *line)
{
    uint32_t updates = 0;
    for (const struct frame *frame = line->in_flight.first; frame; frame = frame->next)
        updates += frame->kind == FRAME_IB_LINK;
    return updates;
}

/* Frames still in use: held frames, and credit updates, which never end. */
static uint32_t expected_in_use(const struct bench *bench)
{
    uint32_t frames = 0;
    for (int i = 0; i < 2; i++)
        frames += updates_on(&bench->nic[i].port.line) + updates_on(&bench->wire[i].line) +
                  (bench->held[i] != NULL);
    return frames;
}

int main(int argc, char **argv)
{
    static struct stress stress;
    if (argc != ARGUMENTS + 1)
        return 2;
    uint32_t value[ARGUMENTS + 1];
    for (int i = 1; i <= ARGUMENTS; i++)
        value[i] = (uint32_t)strtoul(argv[i], NULL, 10);
    struct qp_config config = bench_qp_config;
    config.recovery = argv[2];
    config.mtu = value[10];
    config.ack_every = value[11];
    config.window = value[12];
    config.psn = 0xFFFFF0;
    current = &stress;
    bench_init(&stress.bench, bench_framings[value[1]], &config);
    stress.bench.rng.state = value[3];
    stress.bench.fate = fate_of;
    for (int i = 0; i < CHANCES; i++)
        stress.chance[i] = value[4 + i];
    stress.messages = value[8];
    stress.longest = value[9];
    set_counters();
    for (uint32_t i = 0; i < stress.messages; i++)
        for (int side = 0; side < 2; side++)
            post(side, i);
    while (!is_over() && stress.bench.clock.now < 10 * PS_PER_S)
        bench_run(&stress.bench, PS_PER_MS);
    bench_run(&stress.bench, PS_PER_MS); /* lets frames on the wire arrive */
    for (int side = 0; side < 2; side++) {
        expect_completions(side);
        expect_memory(side);
        for (uint32_t i = 0; i < GUARD; i++)
            EXPECT(stress.bench.sink[side][-1 - (int)i] == GUARD_BYTE &&
                   stress.bench.sink[side][MEMORY + i] == GUARD_BYTE);
    }
    EXPECT_EQUAL(expected_in_use(&stress.bench), stress.bench.pool.in_use);
    bench_free(&stress.bench);
    return 0;
}
