#include "testbench.h"

#include "nic/delivery.h"

#include <assert.h>
#include <string.h>

#include "headers/crc16.h"
#include "headers/ipv4.h"

enum { ETHERNET_BYTES = 14, IPV4_BYTES = 20, SMALL_FRAMES = 4096, LARGE_FRAMES = 2048 };

#define REAL(parameter, value)                                                                     \
    {                                                                                              \
        .name = parameter, .count = 1, .reals = (const double[])                                   \
        {                                                                                          \
            value                                                                                  \
        }                                                                                          \
    }

static const struct parameter dcqcn_parameters[] = {
    REAL("g", 1.0 / 256),       REAL("rai", 40e6),
    REAL("rhai", 200e6),        REAL("min_rate", 100e6),
    REAL("byte_counter", 10e6), REAL("fast_recovery", 5),
    REAL("alpha_timer", 55e6),  REAL("increase_timer", 55e6),
};

const struct cc_config bench_dcqcn = {
    .algorithm = "dcqcn", .parameters = dcqcn_parameters, .parameter_count = 8};

const struct qp_config bench_qp_config = {
    .psn = 1000,
    .mtu = 1024,
    .dscp = 26,
    .ack_dscp = 26,
    .cnp_dscp = 48,
    .ack_every = 16,
    .timeout = 8,
    .retry_count = 7,
    .rnr_retry = 7,
    .min_rnr_timer = 1,
    .max_rd_atomic = 4,
    .max_dest_rd_atomic = 4,
    .recovery = "go-back-n",
    .cc = {.algorithm = "none"},
    .cnp = {.keeps_marks = true, .interval_ps = 50 * PS_PER_US},
};

const enum framing bench_framings[2] = {FRAMING_ETHERNET, FRAMING_INFINIBAND};

/* ---- the wire ------------------------------------------------------------------ */

static struct packet_record packet_record_of(const struct nic *nic, const struct frame *frame,
                                             uint8_t from, picoseconds now)
{
    const uint8_t *body = frame->bytes + nic->framing->header_bytes;
    struct packet_record packet = {.at = now, .from = from, .tc = frame->tc};
    packet.bth = bth_read(body);
    packet.body_bytes = frame->length - nic->framing->header_bytes - nic->framing->trailer_bytes;
    if (packet.body_bytes >= BTH_BYTES + RETH_BYTES)
        packet.reth = reth_read(body + BTH_BYTES);
    if (packet.body_bytes >= BTH_BYTES + AETH_BYTES) {
        packet.aeth = aeth_read(body + BTH_BYTES);
        packet.immediate = read_be32(body + BTH_BYTES);
    }
    if (frame->kind == FRAME_ETHERNET)
        packet.tos = frame->bytes[ETHERNET_BYTES + 1];
    return packet;
}

static void renew_vcrc(struct frame *frame)
{
    uint16_t vcrc = crc16(frame->bytes, frame->length - VCRC_BYTES);
    frame->bytes[frame->length - 2] = (uint8_t)vcrc;
    frame->bytes[frame->length - 1] = (uint8_t)(vcrc >> 8);
}

static void damage(struct bench *bench, struct frame *frame)
{
    uint32_t begin = bench->nic[0].framing->header_bytes + BTH_BYTES;
    uint32_t end = frame->length - (frame->kind == FRAME_IB ? VCRC_BYTES : 0);
    uint32_t at = begin + rng_u32(&bench->rng) % (end - begin);
    frame->bytes[at] ^= (uint8_t)(1u << rng_u32(&bench->rng) % 8);
    if (frame->kind == FRAME_IB)
        renew_vcrc(frame);
}

static struct frame *copy_of(struct bench *bench, const struct frame *frame)
{
    struct frame *copy = frame_new(&bench->pool, frame->kind, frame->length);
    assert(copy);
    memcpy(copy->bytes, frame->bytes, frame->length);
    copy->tc = frame->tc;
    return copy;
}

static enum fate fate_of(struct bench *bench, const struct packet_record *packet)
{
    uint32_t nth = bench->passed[packet->from]++;
    if (bench->fate)
        return bench->fate(bench, packet);
    return nth < PLAN ? (enum fate)bench->plan[packet->from][nth] : PASS;
}

static void cross(struct bench *bench, struct frame *frame, int from, enum fate fate)
{
    struct frame_list *queue = &bench->crossing[!from];
    if (fate == DROP) {
        frame_free(&bench->pool, frame);
        return;
    }
    if (fate == HOLD && !bench->held[from]) {
        bench->held[from] = frame;
        return;
    }
    if (fate == DAMAGE)
        damage(bench, frame);
    if (fate == MARK)
        ipv4_set_ce(frame->bytes + ETHERNET_BYTES);
    if (fate == CORRUPT)
        frame->corrupt = true;
    if (fate == TWICE)
        list_push(queue, copy_of(bench, frame));
    list_push(queue, frame);
    if (bench->held[from]) {
        list_push(queue, bench->held[from]);
        bench->held[from] = NULL;
    }
}

static void wire_receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct bench *bench = port->owner;
    uint8_t from = port == &bench->wire[1];
    uint8_t tc = frame->tc;
    uint32_t length = frame->length;
    struct packet_record packet = packet_record_of(&bench->nic[from], frame, from, now);
    if (bench->spy)
        bench->spy(frame);
    if (bench->packet_count < PACKET_RECORDS)
        bench->packets[bench->packet_count++] = packet;
    cross(bench, frame, from, fate_of(bench, &packet));
    port_released(port, tc, length, now);
    port_kick(&bench->wire[!from], now);
}

static struct frame *wire_pull(struct port *port, picoseconds now)
{
    struct bench *bench = port->owner;
    struct frame_list *queue = &bench->crossing[port == &bench->wire[1]];
    if (!queue->first || !port_may_send(port, queue->first->tc, queue->first->length, now))
        return NULL;
    return list_pop(queue);
}

static const struct port_handler wire_handler = {.receive = wire_receive, .pull = wire_pull};

/* ---- setting up ------------------------------------------------------------------ */

static struct port_config port_config_of(int which, enum framing framing)
{
    struct port_config config = {.framing = (uint8_t)framing,
                                 .mac = {2, 0, 10, 0, 0, (uint8_t)(which + 1)}};
    if (framing == FRAMING_ETHERNET) {
        config.flow_control = FLOW_CONTROL_PFC;
        config.pause.priorities = 0xFF;
    } else {
        config.flow_control = FLOW_CONTROL_CREDITS;
        config.credit = (struct credit_config){
            .vls = 1, .width = 4, .buffer_bytes = {CREDIT_WINDOW * CREDIT_BLOCK}};
    }
    return config;
}

static struct nic_config nic_config_of(int which, enum framing framing)
{
    struct nic_config config = {.port = port_config_of(which, framing),
                                .gateway_mac = {2, 0, 10, 0, 0, (uint8_t)(2 - which)},
                                .max_qps = 8,
                                .max_regions = 4 + 64};
    config.address =
        framing == FRAMING_ETHERNET ? 0x0A000001u + (uint32_t)which : 4u + (uint32_t)which;
    for (uint8_t dscp = 0; dscp < 64; dscp++)
        config.qos_map.of_dscp[dscp] = dscp >> 3;
    return config;
}

/* Adds a source with a known pattern, different for each NIC, and a sink between guards. */
static void add_memory(struct bench *bench, int which)
{
    struct nic *nic = &bench->nic[which];
    uint8_t *source = malloc(MEMORY), *sink = malloc(MEMORY + 2 * GUARD);
    assert(source && sink);
    struct rng pattern = {.state = (uint64_t)which};
    for (uint32_t i = 0; i < MEMORY; i++)
        source[i] = (uint8_t)rng_u32(&pattern);
    memset(sink, GUARD_BYTE, MEMORY + 2 * GUARD);
    bench->source[which] = source;
    bench->sink[which] = sink + GUARD;
    bench->source_key[which] = nic_add_region(nic, 0, FIRST_VA, MEMORY, ACCESS_REMOTE_READ, source);
    bench->sink_key[which] = nic_add_region(
        nic, 0, FIRST_VA, MEMORY, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC,
        bench->sink[which]);
}

struct qp *bench_add_pair(struct bench *bench, const struct qp_config *config)
{
    struct qp *one = nic_add_qp(&bench->nic[0], config);
    struct qp *other = nic_add_qp(&bench->nic[1], config);
    assert(one && other);
    qp_connect_pair(one, other);
    return one;
}

void bench_init(struct bench *bench, enum framing framing, const struct qp_config *config)
{
    *bench = (struct bench){.rng = {.state = 7}};
    bench->packets = malloc(PACKET_RECORDS * sizeof *bench->packets);
    clock_init(&bench->clock);
    bool made = frame_pool_init(&bench->pool, &bench->arena, SMALL_FRAMES, LARGE_FRAMES, FRAME_MAX);
    assert(made && bench->packets);
    for (int i = 0; i < 2; i++) {
        struct nic_config own = nic_config_of(i, framing);
        made =
            nic_init(&bench->nic[i], &bench->arena, &bench->clock, &bench->pool, &bench->rng, &own);
        assert(made);
        struct port *port = &bench->nic[i].port, *wire = &bench->wire[i];
        port_init(wire, &bench->arena, &bench->clock, &bench->pool, &wire_handler, bench,
                  &own.port);
        port_connect(port, wire, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        port_connect(wire, port, LINE_RATE, CABLE_DELAY, DELIVER_TAIL);
        add_memory(bench, i);
    }
    bench->qp[0] = bench_add_pair(bench, config);
    bench->qp[1] = bench->qp[0]->peer;
    for (int i = 0; i < 2; i++) {
        port_start(&bench->nic[i].port, 0);
        port_start(&bench->wire[i], 0);
    }
}

void bench_free(struct bench *bench)
{
    for (int i = 0; i < 2; i++) {
        free(bench->source[i]);
        free(bench->sink[i] - GUARD);
    }
    arena_free(&bench->arena);
    free(bench->packets);
}

void bench_run(struct bench *bench, picoseconds duration)
{
    clock_run_until(&bench->clock, bench->clock.now + duration);
}

/* ---- posting --------------------------------------------------------------------- */

static int side_of(const struct bench *bench, const struct qp *qp)
{
    return qp->nic == &bench->nic[1];
}

static void post(struct bench *bench, struct qp *qp, struct test_wqe *wqe,
                 const struct message *message)
{
    wqe->message = *message;
    wqe->message.record = &wqe->record;
    send_queue_post(qp, &wqe->message, bench->clock.now);
    if (qp->peer && wqe->record.status == STATUS_PENDING && !message_is_fetch(&wqe->message))
        delivery_expect(qp->peer, &wqe->message);
}

void bench_write(struct bench *bench, struct qp *qp, struct test_wqe *wqe, uint32_t from,
                 uint32_t to, uint32_t length)
{
    int side = side_of(bench, qp);
    post(bench, qp, wqe,
         &(struct message){.verb = VERB_WRITE,
                           .lkey = bench->source_key[side],
                           .local_va = FIRST_VA + from,
                           .rkey = bench->sink_key[!side],
                           .remote_va = FIRST_VA + to,
                           .length = length});
}

void bench_send(struct bench *bench, struct qp *qp, struct test_wqe *wqe, uint32_t from,
                uint32_t length)
{
    int side = side_of(bench, qp);
    post(bench, qp, wqe,
         &(struct message){.verb = VERB_SEND,
                           .lkey = bench->source_key[side],
                           .local_va = FIRST_VA + from,
                           .length = length});
}

void bench_post(struct bench *bench, struct qp *qp, struct test_wqe *wqe, enum verb verb,
                uint32_t from, uint32_t to, uint32_t length)
{
    int side = side_of(bench, qp);
    bool reads = verb == VERB_READ, atomic = verb > VERB_READ;
    struct message message = wqe->message;
    message.verb = (uint8_t)verb;
    message.length = length;
    message.local_va = FIRST_VA + (reads || atomic ? to : from);
    message.lkey = reads || atomic ? bench->sink_key[side] : bench->source_key[side];
    message.remote_va = FIRST_VA + (reads || atomic ? from : to);
    message.rkey = reads ? bench->source_key[!side] : bench->sink_key[!side];
    post(bench, qp, wqe, &message);
}

void bench_receive(struct bench *bench, struct qp *qp, struct receive *receive, uint32_t to,
                   uint32_t length)
{
    *receive = (struct receive){
        .lkey = bench->sink_key[side_of(bench, qp)], .va = FIRST_VA + to, .length = length};
    receive_queue_post(qp, receive, bench->clock.now);
}

/* ---- looking --------------------------------------------------------------------- */

bool bench_arrived(const struct bench *bench, int receiver, uint32_t from, uint32_t to,
                   uint32_t length)
{
    return memcmp(bench->sink[receiver] + to, bench->source[!receiver] + from, length) == 0;
}

static bool all_guard(const uint8_t *bytes, const uint8_t *end)
{
    for (; bytes < end; bytes++)
        if (*bytes != GUARD_BYTE)
            return false;
    return true;
}

static bool source_is_as_made(const struct bench *bench, int which)
{
    struct rng pattern = {.state = (uint64_t)which};
    for (uint32_t i = 0; i < MEMORY; i++)
        if (bench->source[which][i] != (uint8_t)rng_u32(&pattern))
            return false;
    return true;
}

bool bench_untouched(const struct bench *bench, int receiver, uint32_t to, uint32_t length)
{
    const uint8_t *sink = bench->sink[receiver];
    return all_guard(sink - GUARD, sink + to) &&
           all_guard(sink + to + length, sink + MEMORY + GUARD) &&
           source_is_as_made(bench, receiver);
}

const struct packet_record *bench_find(const struct bench *bench, int nic, int opcode, uint32_t nth)
{
    for (uint32_t i = 0; i < bench->packet_count; i++) {
        const struct packet_record *packet = &bench->packets[i];
        if (packet->from == nic && (opcode < 0 || packet->bth.opcode == opcode) && nth-- == 0)
            return packet;
    }
    return NULL;
}

uint32_t bench_count(const struct bench *bench, int nic, int opcode)
{
    uint32_t count = 0;
    while (bench_find(bench, nic, opcode, count))
        count++;
    return count;
}

void bench_inject(struct bench *bench, int receiver, const uint8_t *body, uint32_t body_bytes)
{
    struct nic *sender = &bench->nic[!receiver];
    struct frame *frame = nic_frame(sender, body_bytes, 0);
    assert(frame);
    memcpy(nic_frame_body(sender, frame), body, body_bytes);
    sender->framing->seal(&bench->qp[!receiver]->path, TRAFFIC_DATA, frame);
    port_deliver(&bench->nic[receiver].port, frame, bench->clock.now);
}

uint64_t bench_dropped(const struct nic *nic)
{
    const struct nic_counters *counters = nic_counters(nic);
    return counters->rx_crc_errors + counters->rx_icrc_encapsulated + counters->rx_malformed +
           counters->rx_other + counters->rx_unknown_qp + counters->rx_pkey_violations +
           counters->rx_qp_error;
}

int run_test(const struct test *tests, size_t count, int argc, char **argv)
{
    for (size_t i = 0; i < count; i++)
        if (argc == 2 && strcmp(tests[i].name, argv[1]) == 0) {
            tests[i].run();
            return 0;
        }
    fprintf(stderr, "usage: %s TEST\n", argv[0]);
    return 2;
}
