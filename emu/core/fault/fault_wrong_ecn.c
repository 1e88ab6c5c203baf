/* Wrong ECN: a port of a switch marks by other curves than it should, such as with Kmin above XOFF,
 * where PFC acts first and senders never get a CNP. Queues that do not mark are not changed. The
 * fault changes the curves of whatever marks: the switch itself, or eBPF, which may read one half
 * old and one half new for a moment.
 *
 * The fault sees packets that the port sends. Hits are those among them that were marked. */
#include <assert.h>
#include <string.h>

#include "fault/fault.h"
#include "switch/port_disciplines.h"
#include "switch/queue_wred.h"

struct wrong_ecn {
    struct fault fault;
    uint32_t kmin_bytes[PRIORITIES], kmax_bytes[PRIORITIES], pmax_2_32[PRIORITIES]; /* by queue */
    struct wred healthy[PRIORITIES];
    uint64_t sent_before, marked_before;
};

static struct wrong_ecn *ecn_of(struct fault *fault)
{
    return container_of(fault, struct wrong_ecn, fault);
}

static struct wred *curves_of(const struct fault *fault)
{
    struct switch_port *out = switch_port_of(fault->port);
    struct queue_wred *own = discipline_state(out, QUEUE_WRED);
    assert(own || out->external_wred); /* specs with the kernel's RED are refused */
    bool is_external = !own || (switch_of(fault->port)->mark && out->external_wred);
    return is_external ? out->external_wred : own->curve;
}

static uint64_t sent(const struct fault *fault)
{
    uint64_t packets = 0;
    for (unsigned priority = 0; priority < PRIORITIES; priority++)
        packets += fault->port->traffic[priority].tx_packets;
    return packets;
}

static uint64_t marked(const struct fault *fault)
{
    uint64_t packets = 0;
    for (unsigned priority = 0; priority < PRIORITIES; priority++)
        packets += switch_port_of(fault->port)->counters->ecn_marked[priority];
    return packets;
}

static void inject(struct fault *fault, picoseconds now)
{
    (void)now;
    struct wrong_ecn *wrong = ecn_of(fault);
    struct wred *curves = curves_of(fault);
    wrong->sent_before = sent(fault);
    wrong->marked_before = marked(fault);
    memcpy(wrong->healthy, curves, sizeof wrong->healthy);
    for (unsigned queue = 0; queue < PRIORITIES; queue++) {
        curves[queue].kmin_bytes = wrong->kmin_bytes[queue];
        curves[queue].kmax_bytes = wrong->kmax_bytes[queue];
        curves[queue].pmax_2_32 = wrong->pmax_2_32[queue];
    }
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = sent(fault) - ecn_of(fault)->sent_before;
    fault->counts.hits = marked(fault) - ecn_of(fault)->marked_before;
}

static void clear(struct fault *fault, picoseconds now)
{
    (void)now;
    memcpy(curves_of(fault), ecn_of(fault)->healthy, sizeof ecn_of(fault)->healthy);
}

static const struct parameter_field parameters[] = {PARAMETER_ARRAY(wrong_ecn, kmin_bytes),
                                                    PARAMETER_ARRAY(wrong_ecn, kmax_bytes),
                                                    PARAMETER_ARRAY(wrong_ecn, pmax_2_32),
                                                    {0}};

static const struct fault_ops wrong_ecn = {
    .name = "wrong-ecn",
    .bytes = sizeof(struct wrong_ecn),
    .parameters = parameters,
    .exclusive = true,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, wrong_ecn)
