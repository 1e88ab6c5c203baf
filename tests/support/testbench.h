/* Two NICs joined by a wire that records every packet, and can lose, repeat,
 * delay, damage or mark it.
 *
 *     nic[0] ══ 100 Gb/s, 500 ns ══ wire ══ 100 Gb/s, 500 ns ══ nic[1]
 *
 * Each NIC has a source of known bytes and a sink between two guards;
 * `bench_untouched` checks that nothing outside of the sink has changed. */
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
    PLAN = 4096,              /* packets of each direction for which a fate can be planned */
    PACKET_RECORDS = 1 << 15, /* packets that the wire records */
    MEMORY = 1 << 20,         /* bytes of each source and each sink */
    GUARD = 4096,             /* bytes before and after a sink */
    GUARD_BYTE = 0xA5,
    FIRST_VA = 0x10000, /* of each source and each sink */
    FRAME_MAX = 4352,
};

#define LINE_RATE UINT64_C(100000000000)
#define CABLE_DELAY (500 * PS_PER_NS)

/* What the wire does with a packet. */
enum fate {
    PASS,
    DROP,
    TWICE,
    HOLD,    /* until the next packet of the same direction has passed */
    DAMAGE,  /* flip a payload or header bit; the link's CRC stays valid */
    MARK,    /* set CE */
    CORRUPT, /* make the link's CRC wrong */
};

/* A packet as the wire received it. */
struct packet_record {
    picoseconds at;
    uint8_t from; /* NIC 0 or 1 */
    struct bth bth;
    struct reth reth;
    struct aeth aeth;
    uint32_t immediate;  /* if the packet carries one after its BTH */
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
    void (*spy)(const struct frame *frame); /* called for each frame */
    enum fate (*fate)(struct bench *bench,
                      const struct packet_record *packet); /* overrides the plan */

    struct packet_record *packets;
    uint32_t packet_count;
};

/* A message that a test posts, and its record. */
struct test_wqe {
    struct message message;
    struct message_record record;
};

extern const struct qp_config bench_qp_config;
extern const struct cc_config bench_dcqcn; /* with the parameters of its paper */
extern const enum framing bench_framings[2];

void bench_init(struct bench *bench, enum framing framing, const struct qp_config *config);
void bench_free(struct bench *bench);

/* Adds another connected pair of queue pairs; returns NIC 0's. */
struct qp *bench_add_pair(struct bench *bench, const struct qp_config *config);

void bench_run(struct bench *bench, picoseconds duration);

/* Posts `length` bytes of the source at `from` to the other NIC's sink at `to`. */
void bench_write(struct bench *bench, struct qp *qp, struct test_wqe *wqe, uint32_t from,
                 uint32_t to, uint32_t length);
void bench_send(struct bench *bench, struct qp *qp, struct test_wqe *wqe, uint32_t from,
                uint32_t length);
/* Posts a message whose memory is given as offsets. Reads take their data from a source; writes,
 * READ responses and atomics change a sink, at either end. */
void bench_post(struct bench *bench, struct qp *qp, struct test_wqe *wqe, enum verb verb,
                uint32_t from, uint32_t to, uint32_t length);
/* Posts a receive of `length` bytes at `to` in the sink of the queue pair's NIC. */
void bench_receive(struct bench *bench, struct qp *qp, struct receive *receive, uint32_t to,
                   uint32_t length);

bool bench_arrived(const struct bench *bench, int receiver, uint32_t from, uint32_t to,
                   uint32_t length);
/* Whether the guards, the source, and the sink outside of [to, to + length) are unchanged. */
bool bench_untouched(const struct bench *bench, int receiver, uint32_t to, uint32_t length);

/* Number of packets from `nic` with this opcode (negative: any opcode). */
uint32_t bench_count(const struct bench *bench, int nic, int opcode);
const struct packet_record *bench_find(const struct bench *bench, int nic, int opcode,
                                       uint32_t nth);

/* Delivers a packet with this body (BTH through pad) to `receiver`, as if the first queue pair of
 * the other NIC had sent it. */
void bench_inject(struct bench *bench, int receiver, const uint8_t *body, uint32_t body_bytes);

/* Number of packets that the NIC dropped before they reached a queue pair. */
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
