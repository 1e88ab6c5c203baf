/* Completions and events, from queue pairs to shared memory and pipes. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uverbs/server_state.h"

struct uverbs_completions *uverbs_completions_new(struct uverbs_client *client, struct cq *cq,
                                                  uint32_t handle, int memory_fd, uint32_t entries,
                                                  int channel_fd)
{
    struct uverbs_completions *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    uint64_t bytes = uverbs_cq_bytes(entries);
    *made = (struct uverbs_completions){.client = client,
                                        .next = client->completions,
                                        .handle = handle,
                                        .cq = cq,
                                        .shared = uverbs_map_memory(memory_fd, bytes),
                                        .bytes = bytes,
                                        .entries = entries,
                                        .channel_fd = channel_fd};
    if (!made->shared) {
        free(made);
        return NULL;
    }
    client->completions = made;
    return made;
}

int uverbs_completions_resize(struct uverbs_completions *completions, int memory_fd,
                              uint32_t entries)
{
    struct uverbs_cq *shared = completions->shared;
    uint64_t bytes = uverbs_cq_bytes(entries);
    uint32_t head = completions->head, tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);
    struct uverbs_cq *to = uverbs_map_memory(memory_fd, bytes);
    if (!to)
        return EINVAL;
    bool fits = head - tail <= entries && head - tail <= completions->entries;
    if (!fits || !cq_resize(completions->cq, entries)) {
        munmap(to, bytes);
        return fits ? ENOMEM : EINVAL;
    }
    for (uint32_t i = tail; i != head; i++)
        to->at[i % entries] = shared->at[i % completions->entries];
    to->tail = tail;
    to->armed = __atomic_load_n(&shared->armed, __ATOMIC_SEQ_CST);
    to->overrun = completions->is_overrun;
    __atomic_store_n(&to->head, head, __ATOMIC_SEQ_CST);
    munmap(shared, completions->bytes);
    completions->shared = to;
    completions->bytes = bytes;
    completions->entries = entries;
    return 0;
}

void uverbs_completions_free(struct uverbs_completions *completions)
{
    struct uverbs_completions **at = &completions->client->completions;
    while (*at != completions)
        at = &(*at)->next;
    *at = completions->next;
    munmap(completions->shared, completions->bytes);
    free(completions);
}

/* ---- events -------------------------------------------------------------------------- */

/* A pipe that is full has many events of the same kind already. */
static void send_event(int fd, uint32_t kind, uint32_t handle)
{
    struct uverbs_event event = {.kind = kind, .handle = handle};
    ssize_t written = write(fd, &event, sizeof event);
    (void)written;
}

void uverbs_have_news(struct uverbs_client *client)
{
    client->has_news = true;
}

void uverbs_send_event(struct uverbs_client *client, uint32_t kind, uint32_t handle)
{
    send_event(client->events_fd, kind, handle);
    uverbs_have_news(client);
}

static void send_events(struct uverbs_client *client, uint32_t handle, struct event_watch *watch)
{
    static const uint32_t kinds[] = {
        [NIC_QP_REQ_ERROR] = UVERBS_QP_REQ_ERROR,
        [NIC_QP_ACCESS_ERROR] = UVERBS_QP_ACCESS_ERROR,
        [NIC_COMM_EST] = UVERBS_COMM_EST,
        [NIC_LAST_WQE_REACHED] = UVERBS_LAST_WQE_REACHED,
        [NIC_SRQ_LIMIT_REACHED] = UVERBS_SRQ_LIMIT_REACHED,
        [NIC_SQ_DRAINED] = UVERBS_SQ_DRAINED,
    };
    for (uint32_t event = 0; event < sizeof kinds / sizeof *kinds; event++)
        if (watch->events & 1U << event)
            uverbs_send_event(client, kinds[event], handle);
    watch->events = 0;
}

static void give_events(struct uverbs_client *client)
{
    bool up = nic_link_is_up(client->nic);
    /* The state first: a program asks for it as soon as it has the event. */
    __atomic_store_n(&client->session->port_is_down, !up, __ATOMIC_RELEASE);
    if (up != client->link_is_up)
        uverbs_send_event(client, up ? UVERBS_PORT_ACTIVE : UVERBS_PORT_ERROR, UVERBS_NONE);
    client->link_is_up = up;
    if (!client->has_events)
        return;
    client->has_events = false;
    for (uint32_t handle = 0; handle < UVERBS_HANDLES; handle++) {
        if (client->sends[handle])
            send_events(client, handle, &client->sends[handle]->watch);
        if (client->receives[handle])
            send_events(client, handle, &client->receives[handle]->watch);
    }
}

/* ---- completions ---------------------------------------------------------------------- */

/* The program's own name for the request, and its place in the queue of sends. */
static void redeem(struct uverbs_ticket *ticket, struct uverbs_cqe *entry)
{
    entry->wr_id = ticket->wr_id;
    entry->posted = ticket->posted;
    if (ticket->receives)
        uverbs_free_ticket(ticket);
}

static struct uverbs_cqe as_entry(const struct work_completion *completion)
{
    struct uverbs_cqe entry = {.at_ns = (uint64_t)(completion->at_ps / PS_PER_NS),
                               .status = (uint32_t)completion->status,
                               .verb = (uint32_t)completion->verb,
                               .byte_len = completion->byte_len,
                               .imm_data = completion->imm_data,
                               .qp_num = completion->qp_num,
                               .src_qp = completion->src_qp,
                               .wc_flags = completion->wc_flags,
                               .is_receive = completion->is_receive,
                               .slid = completion->slid,
                               .sl = completion->sl,
                               .path_bits = completion->dlid_path_bits};
    redeem((struct uverbs_ticket *)(uintptr_t)completion->wr_id, &entry); // NOLINT
    return entry;
}

/* No queue pair can report to this queue any more, so all that do fail (IBTA 11.6.3.1: an error
 * that prevents the reporting of completions). */
static void fail_users(const struct uverbs_completions *completions)
{
    struct uverbs_client *client = completions->client;
    for (uint32_t handle = 0; handle < UVERBS_HANDLES; handle++)
        if (client->sends[handle] && verbs_fail_user(client->sends[handle]->qp, completions->cq))
            uverbs_send_event(client, UVERBS_QP_FATAL, handle);
}

static void lose(struct uverbs_completions *completions)
{
    __atomic_store_n(&completions->shared->overrun, 1, __ATOMIC_SEQ_CST);
    if (completions->is_overrun)
        return;
    completions->is_overrun = true;
    uverbs_send_event(completions->client, UVERBS_CQ_ERROR, completions->handle);
    fail_users(completions);
}

static void notify(struct uverbs_completions *completions, bool is_solicited)
{
    uint32_t armed = __atomic_load_n(&completions->shared->armed, __ATOMIC_SEQ_CST);
    if (armed == UVERBS_NOT_ARMED || (armed == UVERBS_ARMED_SOLICITED && !is_solicited))
        return;
    __atomic_store_n(&completions->shared->armed, UVERBS_NOT_ARMED, __ATOMIC_SEQ_CST);
    if (completions->channel_fd >= 0)
        send_event(completions->channel_fd, UVERBS_COMPLETION, completions->handle);
}

/* Returns whether the queue has lost some for the first time. */
static bool give(struct uverbs_completions *completions)
{
    bool was_overrun = completions->is_overrun;
    struct uverbs_cq *shared = completions->shared;
    struct work_completion completion;
    while (cq_poll(completions->cq, &completion)) {
        completions->client->has_news = true;
        struct uverbs_cqe entry = as_entry(&completion);
        uint32_t tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);
        if (completions->head - tail >= completions->entries) {
            lose(completions);
            continue;
        }
        shared->at[completions->head++ % completions->entries] = entry;
        __atomic_store_n(&shared->head, completions->head, __ATOMIC_SEQ_CST);
        notify(completions, completion.status != STATUS_SUCCESS || completion.solicited);
    }
    if (cq_is_overrun(completions->cq))
        lose(completions);
    return completions->is_overrun != was_overrun;
}

/* A queue that is lost flushes requests, which end in other queues. */
static void give_all(const struct uverbs_client *client)
{
    for (bool again = true; again;) {
        again = false;
        for (struct uverbs_completions *one = client->completions; one; one = one->next)
            again |= give(one);
    }
}

void uverbs_give_completions(struct uverbs_server *server)
{
    for (struct uverbs_client *client = server->clients; client; client = client->next) {
        give_all(client);
        give_events(client);
    }
}
