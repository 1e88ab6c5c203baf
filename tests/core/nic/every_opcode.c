/* Performs every operation and prints each frame in hexadecimal, one per line.
 *
 *     every_opcode FRAMING        0 (RoCEv2) or 1 (InfiniBand) */
#include "nic/datagram.h"
#include "testbench.h"

enum { SHORT = 101, LONG = 3001, WQES = 64 };

struct tour {
    struct bench bench;
    struct test_wqe wqes[WQES];
    struct receive receives[WQES];
    uint32_t posted, received;
};

static void print_frame(const struct frame *frame)
{
    for (uint32_t i = 0; i < frame->length; i++)
        printf("%02x", frame->bytes[i]);
    printf("\n");
}

static struct test_wqe *post(struct tour *tour, struct qp *qp, enum verb verb, uint32_t length)
{
    struct test_wqe *wqe = &tour->wqes[tour->posted++];
    wqe->message.immediate = 0xCAFEBABE;
    wqe->message.compare = 0x1122334455667788;
    wqe->message.swap_add = 0x99AABBCCDDEEFF00;
    bench_post(&tour->bench, qp, wqe, verb, 64, 128, length);
    return wqe;
}

static void offer(struct tour *tour, struct qp *qp)
{
    bench_receive(&tour->bench, qp, &tour->receives[tour->received++], 5000, LONG + GRH_BYTES);
}

static void tour_connection(struct tour *tour, struct qp *qp, enum verb last)
{
    for (int verb = VERB_SEND; verb <= (int)last; verb++) {
        if (verb == VERB_SEND_INV)
            continue;
        for (int length = SHORT; length <= LONG; length += LONG - SHORT) {
            offer(tour, qp->peer);
            post(tour, qp, (enum verb)verb, verb > VERB_READ ? ATOMIC_BYTES : (uint32_t)length);
            bench_run(&tour->bench, 100 * PS_PER_US);
        }
    }
}

static void tour_invalidation(struct tour *tour, struct qp *qp)
{
    uint8_t bytes[2];
    for (int length = SHORT; length <= LONG; length += LONG - SHORT) {
        struct test_wqe *wqe = &tour->wqes[tour->posted++];
        wqe->message.immediate = nic_add_region(qp->peer->nic, 0, 0, 1, 0, bytes);
        offer(tour, qp->peer);
        bench_post(&tour->bench, qp, wqe, VERB_SEND_INV, 0, 0, (uint32_t)length);
        bench_run(&tour->bench, 100 * PS_PER_US);
    }
}

/* Provokes a selective-repeat NAK, an RNR NAK, a CNP and an error NAK. */
static void tour_troubles(struct tour *tour, struct qp *qp)
{
    struct bench *bench = &tour->bench;
    bench->plan[0][bench->passed[0] + 1] = DROP;
    if (bench->nic[0].config.port.framing == FRAMING_ETHERNET)
        bench->plan[0][bench->passed[0]] = MARK;
    post(tour, qp, VERB_WRITE, LONG);
    bench_run(bench, 100 * PS_PER_US);
    post(tour, qp, VERB_SEND, SHORT);
    bench_run(bench, 3 * PS_PER_US);
    offer(tour, qp->peer);
    bench_run(bench, 100 * PS_PER_US);
    bench->sink_key[1] ^= 1;
    post(tour, qp, VERB_WRITE, SHORT);
    bench_run(bench, 100 * PS_PER_US);
    bench->sink_key[1] ^= 1;
}

static void tour_datagrams(struct tour *tour, struct qp *qp)
{
    struct address to;
    address_init(&to, qp, &qp->remote, qp->config.qkey, qp->config.sl);
    for (int verb = VERB_SEND; verb <= VERB_SEND_IMM; verb++) {
        offer(tour, qp->peer);
        tour->wqes[tour->posted].message.to = &to;
        post(tour, qp, (enum verb)verb, SHORT);
        bench_run(&tour->bench, 100 * PS_PER_US);
    }
}

int main(int argc, char **argv)
{
    static struct tour tour;
    if (argc != 2)
        return 2;
    struct qp_config config = bench_qp_config;
    config.credits = true;
    bench_init(&tour.bench, bench_framings[argv[1][0] == '1'], &config);
    tour.bench.spy = print_frame;
    tour_connection(&tour, tour.bench.qp[0], VERB_FETCH_ADD);
    tour_invalidation(&tour, tour.bench.qp[0]);

    config.credits = false;
    config.recovery = "selective-repeat";
    config.window = 64;
    config.cc = bench_dcqcn;
    config.cnp.becn = BECN_IN_CNP;
    tour_troubles(&tour, bench_add_pair(&tour.bench, &config));

    config = bench_qp_config;
    config.transport = TRANSPORT_UC;
    tour_connection(&tour, bench_add_pair(&tour.bench, &config), VERB_WRITE_IMM);
    config.transport = TRANSPORT_UD;
    config.qkey = 0x80010000;
    tour_datagrams(&tour, bench_add_pair(&tour.bench, &config));
    bench_free(&tour.bench);
    return 0;
}
