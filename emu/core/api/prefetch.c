#include "api/prefetch.h"

#include "nic/nic_port.h"
#include "switch/pipeline.h"
#include "switch/switch.h"

static void fetch(const void *memory)
{
    __builtin_prefetch(memory, 1);
}

/* Fetches all of a queue pair, since a packet uses nearly all of it. */
static void fetch_queue_pair(const struct qp *qp)
{
    for (size_t at = 0; at < sizeof *qp; at += CACHE_LINE)
        fetch((const char *)qp + at);
}

/* Fetches a port without its line, and the data of its owner that follows it in memory. */
static void fetch_port(const struct port *port)
{
    const char *behind = (const char *)(port + 1);
    fetch(port);
    fetch(&port->up);
    fetch(behind);
    fetch(behind + CACHE_LINE);
}

/* Fetches the state of a frame and the headers that follow it in memory. `frame` may be NULL. */
static void fetch_frame(const struct frame *frame)
{
    if (!frame)
        return;
    fetch(frame);
    fetch(frame + 1);
}

/* ---- a frame arrives ------------------------------------------------------------ */

static void fetch_class(const struct port *port, uint8_t tc)
{
    const struct switch_port *in = port_of_switch(port);
    fetch(&port->traffic[tc]);
    if (port_has_buffers(port))
        fetch(&port->credit->of_class[tc]);
    else if (in)
        fetch(&in->priority_group[tc]);
}

static void fetch_addressee(const struct nic *nic, const struct frame *frame)
{
    const struct qp *qp = nic_addressee(nic, frame);
    if (!qp)
        return;
    fetch_queue_pair(qp);
}

static void prefetch_arrival(const struct line *line, unsigned events_away)
{
    const struct frame *frame = line->in_flight.first;
    if (events_away == 3) {
        fetch(&line->in_flight);
        fetch_port(line->far);
    } else if (events_away == 2) {
        fetch_frame(frame);
        fetch(line->far->gauges);
    } else if (frame) {
        fetch(frame->next);
        fetch_class(line->far, frame->tc);
        if (port_of_nic(line->far))
            fetch_addressee(port_of_nic(line->far), frame);
    }
}

/* ---- a frame has waited out the latency -------------------------------------------- */

static void fetch_egress(const struct switch_port *out, const struct frame_queue *queue)
{
    fetch_port(&out->port);
    fetch(&out->port.line);
    fetch(queue);
}

static void prefetch_enqueueing(const struct switch_port *in, unsigned events_away)
{
    const struct frame *frame = in->pipeline.first;
    if (events_away == 3) {
        fetch(in);
        fetch(frame);
        return;
    }
    if (!frame)
        return;
    const struct switch_port *out = switch_port(in->port.owner, frame->out_port);
    const struct frame_queue *queue = &out->queue[frame->tc];
    if (events_away == 2) {
        fetch(frame->next);
        fetch_egress(out, queue);
    } else {
        fetch(out->port.gauges);
        fetch(&out->port.traffic[frame->tc]);
        fetch(queue->frames.last);
    }
}

/* ---- the last bit of a frame leaves ------------------------------------------------------- */

static void fetch_next_to_send(const struct nic *nic)
{
    if (!nic->waiting[TRAFFIC_DATA])
        return;
    const struct qp *qp = nic->turns[TRAFFIC_DATA][__builtin_ctz(nic->waiting[TRAFFIC_DATA])].first;
    fetch_queue_pair(qp);
}

/* Assumes that the next frame has the same class as the last one, which is usual. */
static void prefetch_sending(const struct port *port, unsigned events_away)
{
    const struct charge *charge = &port->sending;
    const struct switch_port *out = container_of(port, struct switch_port, port), *in;
    if (events_away == 3) {
        fetch_port(port);
        fetch(&port->line.in_flight);
        fetch(&port->line.arrival);
        fetch(&port->traffic[charge->tc]);
        if (charge->bytes)
            fetch(&out->queue[charge->tc]);
    } else if (events_away == 2) {
        fetch(port->gauges);
        fetch(port->line.in_flight.last);
        if (charge->bytes) {
            in = switch_port(port->owner, charge->in_port);
            fetch_frame(out->queue[charge->tc].frames.first);
            fetch_port(&in->port);
            fetch(&in->priority_group[charge->tc]);
        }
    } else if (charge->bytes) {
        fetch(switch_port(port->owner, charge->in_port)->port.gauges);
    } else if (port_of_nic(port)) {
        fetch_next_to_send(port_of_nic(port));
    }
}

void prefetch(const struct timer *timer, unsigned events_away)
{
    if (timer->fire == line_arrival)
        prefetch_arrival(container_of(timer, struct line, arrival), events_away);
    else if (timer->fire == transmission_done)
        prefetch_sending(container_of(timer, struct port, done), events_away);
    else if (timer->fire == pipeline_due)
        prefetch_enqueueing(container_of(timer, struct switch_port, pipeline_due), events_away);
}
