#define _GNU_SOURCE /* memfd seals */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "uverbs/server_state.h"

/* ---- memory ------------------------------------------------------------------------ */

/* A file that shrinks would end the process that has it mapped. */
static bool cannot_shrink(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK;
}

void *uverbs_map_memory(int fd, uint64_t bytes)
{
    struct stat file;
    if (!cannot_shrink(fd) || fstat(fd, &file) != 0 || (uint64_t)file.st_size < bytes)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint8_t *uverbs_map(int memory_fd, uint64_t addr, uint64_t length)
{
    uint64_t from = addr & ~(page() - 1), offset = addr - from;
    struct stat file;
    if (length == 0 || !cannot_shrink(memory_fd) || fstat(memory_fd, &file) != 0 ||
        addr + length < addr || addr + length > (uint64_t)file.st_size)
        return NULL;
    uint8_t *bytes =
        mmap(NULL, offset + length, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, (off_t)from);
    return bytes == MAP_FAILED ? NULL : bytes + offset;
}

void uverbs_unmap(uint8_t *bytes, uint64_t length)
{
    uint64_t offset = (uintptr_t)bytes & (page() - 1);
    munmap(bytes - offset, offset + length);
}

bool uverbs_detach(uint8_t *bytes, uint64_t length)
{
    uint64_t offset = (uintptr_t)bytes & (page() - 1), whole = offset + length;
    uint8_t *copy = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return false;
    memcpy(copy, bytes - offset, whole);
    if (mremap(copy, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, bytes - offset) != MAP_FAILED)
        return true;
    munmap(copy, whole);
    return false;
}

/* ---- server and clients ---------------------------------------------------------------- */

size_t uverbs_time_bytes(void)
{
    return sizeof(struct uverbs_time);
}

struct uverbs_server *uverbs_server_new(int time_fd, int bell_fd, bool *event)
{
    struct uverbs_server *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    void *time = mmap(NULL, sizeof *server->time, PROT_READ | PROT_WRITE, MAP_SHARED, time_fd, 0);
    if (time == MAP_FAILED) {
        free(server);
        return NULL;
    }
    server->time = time;
    server->bell_fd = bell_fd;
    server->event = event;
    prctl(PR_SET_TIMERSLACK, 1); /* looks at programs are as far apart as waiting.c says */
    return server;
}

void uverbs_server_free(struct uverbs_server *server)
{
    munmap(server->time, sizeof *server->time);
    free(server);
}

struct uverbs_client *uverbs_client_new(struct uverbs_server *server, struct nic *nic,
                                        int session_fd, uint32_t pid, int events_fd,
                                        uint8_t default_sl)
{
    struct uverbs_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->session = uverbs_map_memory(session_fd, sizeof *client->session);
    if (!client->session) {
        free(client);
        return NULL;
    }
    client->server = server;
    client->nic = nic;
    client->pid = pid;
    client->events_fd = events_fd;
    client->default_sl = default_sl;
    client->link_is_up = nic_link_is_up(nic);
    client->session->port_is_down = !client->link_is_up;
    nic_watch_link(nic, server->event);
    uverbs_begin_waiting(client);
    /* In the order of connecting: requests of one instant are taken in this order. */
    struct uverbs_client **last = &server->clients;
    while (*last)
        last = &(*last)->next;
    *last = client;
    return client;
}

void uverbs_client_end(struct uverbs_client *client)
{
    struct uverbs_client **at = &client->server->clients;
    while (*at && *at != client)
        at = &(*at)->next;
    if (*at)
        *at = client->next;
}

void uverbs_client_free(struct uverbs_client *client)
{
    uverbs_client_end(client);
    nic_watch_writes(client->nic, NULL);
    munmap(client->session, sizeof *client->session);
    free(client);
}

/* ---- queues ---------------------------------------------------------------------------- */

static bool ring_open(struct uverbs_ring *ring, int memory_fd, uint32_t slots, uint32_t slot_bytes)
{
    uint64_t bytes = uverbs_queue_bytes(slots, slot_bytes);
    *ring = (struct uverbs_ring){.shared = uverbs_map_memory(memory_fd, bytes),
                                 .bytes = bytes,
                                 .slots = slots,
                                 .slot_bytes = slot_bytes};
    return ring->shared != NULL;
}

static void ring_close(struct uverbs_ring *ring)
{
    if (ring->shared)
        munmap(ring->shared, ring->bytes);
}

struct uverbs_send_queue *uverbs_sends_new(struct uverbs_client *client, uint32_t handle,
                                           int memory_fd, uint32_t slots, uint32_t inline_bytes,
                                           struct verbs_qp *qp, bool is_datagram)
{
    struct uverbs_send_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    *queue = (struct uverbs_send_queue){
        .client = client,
        .handle = handle,
        .inline_bytes = inline_bytes,
        .tickets = calloc(slots, sizeof *queue->tickets),
        .qp = qp,
        .watch = {.any = &client->has_events, .stop = client->server->event},
        .is_datagram = is_datagram};
    uint32_t slot_bytes = uverbs_slot_bytes(inline_bytes, MAX_SGE);
    if (queue->tickets && ring_open(&queue->ring, memory_fd, slots, slot_bytes)) {
        client->sends[handle] = queue;
        verbs_watch(qp, &queue->watch);
        return queue;
    }
    uverbs_sends_free(queue);
    return NULL;
}

void uverbs_sends_free(struct uverbs_send_queue *queue)
{
    if (queue->client->sends[queue->handle] == queue)
        queue->client->sends[queue->handle] = NULL;
    ring_close(&queue->ring);
    free(queue->tickets);
    free(queue);
}

struct uverbs_receive_queue *uverbs_receives_new(struct uverbs_client *client, uint32_t handle,
                                                 int memory_fd, uint32_t slots, struct verbs_qp *qp,
                                                 struct verbs_srq *srq)
{
    struct uverbs_receive_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    *queue = (struct uverbs_receive_queue){
        .client = client,
        .handle = handle,
        .tickets = calloc(slots, sizeof *queue->tickets),
        .qp = qp,
        .srq = srq,
        .watch = {.any = &client->has_events, .stop = client->server->event}};
    uint32_t slot_bytes = uverbs_slot_bytes(0, MAX_SGE);
    if (queue->tickets && ring_open(&queue->ring, memory_fd, slots, slot_bytes)) {
        uverbs_receives_reset(queue);
        client->receives[handle] = queue;
        if (srq) {
            verbs_srq_watch(srq, &queue->watch);
            verbs_srq_on_dropped(srq, uverbs_drop_receive);
        }
        return queue;
    }
    uverbs_receives_free(queue);
    return NULL;
}

void uverbs_receives_reset(struct uverbs_receive_queue *queue)
{
    queue->free = NULL;
    for (uint32_t i = 0; i < queue->ring.slots; i++) {
        queue->tickets[i] = (struct uverbs_ticket){.receives = queue, .next_free = queue->free};
        queue->free = &queue->tickets[i];
    }
}

void uverbs_receives_free(struct uverbs_receive_queue *queue)
{
    if (queue->client->receives[queue->handle] == queue)
        queue->client->receives[queue->handle] = NULL;
    ring_close(&queue->ring);
    free(queue->tickets);
    free(queue);
}
