/* Scatter/gather lists: every byte is at its place, whatever the pieces. */
#include <string.h>

#include "nic/sge.h"
#include "nic/verbs_api.h"
#include "programs.h"

enum { PIECES_END = 64 * 1024 };

static const char *const recoveries[] = {"go-back-n", "go-back-0", "selective-repeat"};

struct list {
    struct sge sges[MAX_SGE];
    uint32_t count, length;
};

/* Pieces of random lengths, some of them empty, in random order in memory. `make`: an element. */
static struct list random_list(struct rng *rng, const struct program *program,
                               struct sge (*make)(const struct program *, uint32_t, uint32_t),
                               uint32_t most)
{
    enum { STRIDE = PIECES_END / MAX_SGE };
    struct list list = {.count = 2 + rng_u32(rng) % (MAX_SGE - 1)};
    uint32_t turn = rng_u32(rng) % MAX_SGE;
    for (uint32_t i = 0; i < list.count; i++) {
        uint32_t length = rng_u32(rng) % 4 ? rng_u32(rng) % (most + 1) : 0;
        uint32_t place = (i * 5 + turn) % MAX_SGE; /* 5 and 16 have no common divisor */
        list.sges[i] = make(program, place * STRIDE, length);
        list.length += length;
    }
    return list;
}

/* The bytes of a list, from the memory at `base`. */
static void flatten(const struct list *list, const uint8_t *base, uint8_t *bytes)
{
    for (uint32_t i = 0; i < list->count; i++) {
        memcpy(bytes, base + (list->sges[i].addr - FIRST_VA), list->sges[i].length);
        bytes += list->sges[i].length;
    }
}

/* Whether the first `length` bytes of the list are these, and no other byte of the sink was
 * written. */
static bool holds(const struct bench *bench, int side, const struct list *list,
                  const uint8_t *bytes, uint32_t length)
{
    uint8_t *expected = malloc(MEMORY);
    memset(expected, GUARD_BYTE, MEMORY);
    for (uint32_t i = 0; i < list->count && length; i++) {
        uint32_t part = list->sges[i].length < length ? list->sges[i].length : length;
        memcpy(expected + (list->sges[i].addr - FIRST_VA), bytes, part);
        bytes += part;
        length -= part;
    }
    bool same = memcmp(expected, bench->sink[side], MEMORY) == 0;
    free(expected);
    return same;
}

/* A message from a list, into a list, in one of the ways that use them. */
static void transfer(struct bench *bench, struct rng *rng, enum verb verb,
                     const struct qp_config *config)
{
    struct program programs[2];
    uint8_t bytes[PIECES_END];
    programs_connect(programs, bench, config);
    uint32_t most = config->transport == TRANSPORT_UD ? 60 : 3000;
    bool is_read = verb == VERB_READ, is_send = verb == VERB_SEND;
    struct list near = random_list(rng, &programs[0], is_read ? sink_sge : source_sge, most);
    struct list far = random_list(rng, &programs[1], sink_sge, most);
    while (is_send && far.length < near.length + GRH_BYTES)
        far.sges[0].length += 500, far.length += 500;
    struct send_request request = request_of(&programs[0], verb, 1, near.sges, near.count, 0);
    request.is_datagram = config->transport == TRANSPORT_UD;
    request.remote_address = bench->nic[1].config.address;
    request.remote_qpn = qp_number(programs[1].qp);
    EXPECT_EQUAL(0, verbs_post_recv(programs[1].verbs, 2, far.sges, far.count, 0));
    EXPECT_EQUAL(0, verbs_post_send(programs[0].verbs, &request, 0));
    bench_run(bench, 10 * PS_PER_MS);
    EXPECT_COMPLETION(&programs[0], 1, STATUS_SUCCESS);
    flatten(&near, bench->source[0], bytes);
    if (is_read)
        EXPECT(holds(bench, 0, &near, bench->source[1], near.length));
    else if (verb == VERB_WRITE)
        EXPECT(memcmp(bytes, bench->sink[1], near.length) == 0);
    else if (config->transport != TRANSPORT_UD)
        EXPECT(holds(bench, 1, &far, bytes, near.length));
    else {
        uint8_t seen[PIECES_END];
        flatten(&far, bench->sink[1], seen);
        EXPECT(memcmp(bytes, seen + GRH_BYTES, near.length) == 0);
        EXPECT_EQUAL(0x45, seen[GRH_BYTES - 20]); /* the first byte of an IPv4 header */
    }
    program_end(&programs[0]);
    program_end(&programs[1]);
}

TEST(lists_are_gathered_and_scattered)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_WRITE, VERB_READ};
    struct rng rng = {.state = 3};
    for (int round = 0; round < 60; round++) {
        struct bench bench;
        struct qp_config config = bench_qp_config;
        config.recovery = recoveries[round % 3];
        config.window = 64;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        if (round % 2)
            bench.plan[0][3] = bench.plan[1][3] = DROP;
        transfer(&bench, &rng, verbs[round / 3 % 3], &config);
        bench_free(&bench);
    }
}

TEST(datagrams_are_gathered_and_scattered)
{
    struct rng rng = {.state = 4};
    for (int round = 0; round < 30; round++) {
        struct bench bench;
        struct qp_config config = bench_qp_config;
        config.transport = TRANSPORT_UD;
        bench_init(&bench, FRAMING_ETHERNET, &config);
        transfer(&bench, &rng, VERB_SEND, &config);
        bench_free(&bench);
    }
}

TEST(each_element_must_be_valid)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &bench_qp_config);
    for (int wrong = 0; wrong < 3; wrong++) {
        struct sge sges[3];
        for (int i = 0; i < 3; i++)
            sges[i] = sink_sge(&programs[0], 0, 100);
        sges[wrong].lkey ^= 1;
        struct send_request request = request_of(&programs[0], VERB_WRITE, 1, sges, 3, 0);
        struct verbs_qp *verbs = programs[0].verbs;
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, verbs_post_send(verbs, &request, 0));
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, verbs_post_recv(verbs, 1, sges, 3, 0));
        sges[wrong] = source_sge(&programs[0], 0, 100); /* not to be written */
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, verbs_post_recv(verbs, 1, sges, 3, 0));
        request.verb = VERB_READ;
        EXPECT_EQUAL(STATUS_LOC_PROT_ERR, verbs_post_send(verbs, &request, 0));
        sges[wrong] = (struct sge){.addr = 1, .lkey = 1}; /* of no bytes: needs no memory */
        EXPECT_EQUAL(0, verbs_post_recv(verbs, 1, sges, 3, 0));
    }
    program_end(&programs[0]);
    program_end(&programs[1]);
    bench_free(&bench);
}

TEST(list_of_too_many_bytes_is_refused)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &bench_qp_config);
    struct sge sges[MAX_SGE];
    for (int i = 0; i < MAX_SGE; i++) /* together 2^32 and some bytes */
        sges[i] = source_sge(&programs[0], 0, i < 8 ? 1u << 29 : 1);
    struct send_request request = request_of(&programs[0], VERB_WRITE, 1, sges, MAX_SGE, 0);
    EXPECT_EQUAL(STATUS_LOC_LEN_ERR, verbs_post_send(programs[0].verbs, &request, 0));
    program_end(&programs[0]);
    program_end(&programs[1]);
    bench_free(&bench);
}

TEST(list_of_a_posted_request_may_be_reused)
{
    struct bench bench;
    struct program programs[2];
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    programs_connect(programs, &bench, &bench_qp_config);
    for (uint32_t i = 0; i < 10; i++) {
        struct sge sges[] = {source_sge(&programs[0], 3000 * i, 1000),
                             source_sge(&programs[0], 3000 * i + 1000, 2000)};
        struct send_request request = request_of(&programs[0], VERB_WRITE, i, sges, 2, 3000 * i);
        EXPECT(program_submit(&programs[0], &request));
        memset(sges, 0xFF, sizeof sges);
    }
    bench_run(&bench, PS_PER_MS);
    for (uint32_t i = 0; i < 10; i++)
        EXPECT_COMPLETION(&programs[0], i, STATUS_SUCCESS);
    EXPECT(bench_arrived(&bench, 1, 0, 0, 30000));
    program_end(&programs[0]);
    program_end(&programs[1]);
    bench_free(&bench);
}

/* The memory of the second element is deregistered, and freed, while the message is under way. */
TEST(freed_element_is_not_touched)
{
    static const enum verb verbs[] = {VERB_SEND, VERB_WRITE, VERB_READ};
    for (size_t v = 0; v < 3; v++)
        for (int far = 0; far < (v == 0 ? 2 : 1); far++) {
            enum { HALF = 50000 };
            struct bench bench;
            struct program programs[2];
            bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
            programs_connect(programs, &bench, &bench_qp_config);
            uint8_t *extra = calloc(1, HALF);
            uint32_t key =
                nic_add_region(&bench.nic[far], 0, FIRST_VA, HALF, ACCESS_LOCAL_WRITE, extra);
            struct sge piece = {.addr = FIRST_VA, .length = HALF, .lkey = key};
            struct sge near[] = {sink_sge(&programs[0], 0, HALF), sink_sge(&programs[0], 0, HALF)};
            struct sge there[] = {sink_sge(&programs[1], 0, HALF), sink_sge(&programs[1], 0, HALF)};
            (far ? there : near)[1] = piece;
            struct send_request request = request_of(&programs[0], verbs[v], 1, near, 2, 0);
            EXPECT(verbs_submit_recv(programs[1].verbs, 2, there, 2, 0));
            EXPECT(program_submit(&programs[0], &request));
            bench_run(&bench, 3 * PS_PER_US);
            EXPECT(nic_invalidate(&bench.nic[far], 0, key));
            free(extra);
            bench_run(&bench, 10 * PS_PER_MS);
            EXPECT_COMPLETION(&programs[0], 1, far ? STATUS_REM_OP_ERR : STATUS_LOC_PROT_ERR);
            if (far)
                EXPECT_COMPLETION(&programs[1], 2, STATUS_LOC_PROT_ERR);
            program_end(&programs[0]);
            program_end(&programs[1]);
            bench_free(&bench);
        }
}

MAIN(RUN(lists_are_gathered_and_scattered), RUN(datagrams_are_gathered_and_scattered),
     RUN(each_element_must_be_valid), RUN(list_of_too_many_bytes_is_refused),
     RUN(list_of_a_posted_request_may_be_reused), RUN(freed_element_is_not_touched))
