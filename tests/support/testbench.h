/* Two NICs joined by a wire that sees every packet, and may lose, repeat,
 * delay, damage or mark it.
 *
 *     nic[0] ══ 100 Gb/s, 500 ns ══ wire ══ 100 Gb/s, 500 ns ══ nic[1]
 *
 * Each NIC has a source of known bytes and a sink between two guards, and
 * `bench_intact` says whether anything outside of the sink was touched. */
#ifndef TESTBENCH_H
#define TESTBENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "headers/lrh.h"
#include "nic/nic_port.h"
#include "nic/receive_queue.h"
#include "nic/response_queue.h"
#include "nic/send_queue.h"

enum {
    PLAN = 4096,      /* packets a direction that a fate can be planned for */
    SIGHTS = 1 << 15, /* packets that are remembered */
    MEMORY = 1 << 20, /* bytes of a source, and of a sink */
    GUARD = 4096,     /* bytes before and behind a sink */
    GUARD_BYTE = 0xA5,
    FIRST_VA = 0x10000, /* of a source, and of a sink */
    FRAME_MAX = 4352,
};

#define LINE_RATE UINT64_C(100000000000)
#define CABLE_DELAY (500 * PS_PER_NS)

/* What the wire does with a packet. */
enum fate {
    PASS,
    DROP,
    TWICE,
    HOLD,    /* until the next packet of its direction has passed */
    DAMAGE,  /* a payload or header bit flips; the CRC of the link is right */
    MARK,    /* CE */
    CORRUPT, /* the CRC of the link is wrong */
};

/* A packet as the wire saw it. */
struct sight {
    picoseconds at;
    uint8_t from; /* NIC 0 or 1 */
    struct bth bth;
    struct reth reth;
    struct aeth aeth;
    uint32_t immediate;  /* of a packet that has one behind its BTH */
    uint32_t body_bytes; /* BTH through pad */
    uint8_t tos;
    uint8_t tc;
};

struct bench {
    struct clock clock;
    struct arena arena;
    struct frame_pool pool;
    struct rng rng;
    struct nic nic[2];
    struct qp *qp[2];
    uint8_t *source[2], *sink[2]; /* MEMORY bytes each */
    uint32_t source_key[2], sink_key[2];

    struct port wire[2]; /* towards NIC 0, NIC 1 */
    struct frame_list crossing[2];
    struct frame *held[2]; /* on its way from NIC 0, NIC 1 */
    uint8_t plan[2][PLAN]; /* enum fate of the n-th packet from NIC 0, NIC 1 */
    uint32_t passed[2];
    void (*spy)(const struct frame *frame);                            /* sees each */
    enum fate (*fate)(struct bench *bench, const struct sight *sight); /* overrides the plan */

    struct sight *sights;
    uint32_t sight_count;
};

/* A message of a test, and what became of it. */
struct letter {
    struct message message;
    struct message_record record;
};

extern const struct qp_config bench_qp_config;
extern const struct cc_config bench_dcqcn; /* with the parameters of its paper */
extern const enum framing bench_framings[2];

void bench_init(struct bench *bench, enum framing framing, const struct qp_config *config);
void bench_free(struct bench *bench);

/* Another connected pair of queue pairs; returns that of NIC 0. */
struct qp *bench_add_pair(struct bench *bench, const struct qp_config *config);

void bench_run(struct bench *bench, picoseconds duration);

/* Posts `length` bytes of the source at `from` to the other NIC's sink at `to`. */
void bench_write(struct bench *bench, struct qp *qp, struct letter *letter, uint32_t from,
                 uint32_t to, uint32_t length);
void bench_send(struct bench *bench, struct qp *qp, struct letter *letter, uint32_t from,
                uint32_t length);
/* Posts a message whose memory is given as offsets: from or to a source, for what it reads, and
 * into a sink, for what it writes, at either end. */
void bench_post(struct bench *bench, struct qp *qp, struct letter *letter, enum verb verb,
                uint32_t from, uint32_t to, uint32_t length);
/* A receive in the sink of `nic` at `to`. */
void bench_receive(struct bench *bench, struct qp *qp, struct receive *receive, uint32_t to,
                   uint32_t length);

bool bench_arrived(const struct bench *bench, int receiver, uint32_t from, uint32_t to,
                   uint32_t length);
/* Guards and sources are as they were, and so are sinks outside of [to, to + length). */
bool bench_untouched(const struct bench *bench, int receiver, uint32_t to, uint32_t length);

/* How many packets from `nic` the wire saw with that opcode (any: negative). */
uint32_t bench_count(const struct bench *bench, int nic, int opcode);
const struct sight *bench_find(const struct bench *bench, int nic, int opcode, uint32_t nth);

/* Gives a packet with these BTH .. pad to `receiver` as if the other end had sent it on its first
 * queue pair. */
void bench_inject(struct bench *bench, int receiver, const uint8_t *body, uint32_t body_bytes);

/* Packets that reached no queue pair. */
uint64_t bench_dropped(const struct nic *nic);

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT_EQUAL(expected, actual)                                                             \
    do {                                                                                           \
        long long want_ = (long long)(expected), have_ = (long long)(actual);                      \
        if (want_ != have_) {                                                                      \
            fprintf(stderr, "%s:%d: %s: expected %lld, got %lld\n", __FILE__, __LINE__, #actual,   \
                    want_, have_);                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Runs the test named on the command line. */
struct test {
    const char *name;
    void (*run)(void);
};

int run_test(const struct test *tests, size_t count, int argc, char **argv);

#define TEST(name) static void name(void)
#define RUN(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
#define MAIN(...)                                                                                  \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct test tests[] = {__VA_ARGS__};                                          \
        return run_test(tests, sizeof tests / sizeof *tests, argc, argv);                          \
    }

#endif
