/* A fabric of which this process runs some parts. */
#include <stdlib.h>
#include <string.h>

#include "api/fabric.h"
#include "nic/mr.h"
#include "nic/workload.h"

bool fabric_take_parts(struct fabric *fabric, const uint32_t *first_parts, uint32_t processes,
                       uint32_t own, uint32_t threads, const struct workload *workload)
{
    struct arena *arena = &fabric->arena;
    uint32_t *firsts = arena_take(arena, processes + 1, sizeof *firsts);
    fabric->packets = arena_take(arena, processes, sizeof *fabric->packets);
    if (!firsts || !fabric->packets)
        return false;
    memcpy(firsts, first_parts, (processes + 1) * sizeof *firsts);
    fabric->first_parts = firsts;
    fabric->process_count = processes;
    fabric->own_process = own;
    fabric->own_first = firsts[own];
    fabric->own_count = firsts[own + 1] - firsts[own];
    fabric->readers[0] = (struct mail_reader){&mail_with_frame, fabric->ports};
    fabric->readers[1] = (struct mail_reader){&mail_with_announcement, workload};
    windows_free(fabric->windows);
    fabric->windows = windows_new(fabric->part_list, fabric->own_first, fabric->own_count, threads);
    return fabric->windows;
}

bool fabric_runs(const struct fabric *fabric, uint32_t index)
{
    const struct port *port = fabric->ports[index];
    return port && fabric_runs_node(fabric, port->clock);
}

uint32_t fabric_far_key(struct fabric *fabric, uint32_t number)
{
    return mr_key(number, (uint8_t)rng_u32(&fabric->rng));
}

uint64_t fabric_run_window(struct fabric *fabric, int64_t until_ps)
{
    return windows_run_one(fabric->windows, until_ps);
}

void fabric_arrive(struct fabric *fabric, int64_t until_ps)
{
    windows_arrive(fabric->windows, until_ps);
}

int64_t fabric_pack_mail(struct fabric *fabric)
{
    picoseconds next = windows_next_event(fabric->windows);
    struct part **own = fabric->part_list + fabric->own_first;
    for (uint32_t i = 0; i < fabric->process_count; i++) {
        uint32_t first = fabric->first_parts[i], count = fabric->first_parts[i + 1] - first;
        if (i != fabric->own_process)
            own[0]->out_of_memory |=
                !mail_pack(&fabric->packets[i], fabric->readers, own, fabric->own_count,
                           fabric->part_list + first, count, next);
    }
    return next;
}

size_t fabric_packed_mail(const struct fabric *fabric, uint32_t process, const uint8_t **bytes)
{
    *bytes = fabric->packets[process].bytes;
    return fabric->packets[process].size;
}

void fabric_unpack_mail(struct fabric *fabric, const uint8_t *bytes)
{
    struct fabric_part *own = fabric_own_part(fabric, 0);
    own->part.out_of_memory |= !mail_unpack(bytes, fabric->readers, fabric->part_list);
}

bool fabric_share_deadlocks(struct fabric *fabric)
{
    bool *own = calloc(fabric->port_count, sizeof *own);
    for (uint32_t i = 0; own && i < fabric->port_count; i++)
        own[i] = fabric_runs(fabric, i);
    return own && deadlock_watch_share(&fabric->deadlocks, own);
}

uint32_t fabric_deadlock_classes(const struct fabric *fabric)
{
    return deadlock_watch_classes(&fabric->deadlocks);
}

uint16_t *fabric_deadlock_set(struct fabric *fabric)
{
    return fabric->deadlocks.in_set;
}

uint32_t *fabric_deadlock_places(struct fabric *fabric)
{
    return fabric->deadlocks.places;
}

void fabric_deadlock_heads(struct fabric *fabric, uint16_t classes)
{
    deadlock_watch_heads(&fabric->deadlocks, classes);
}

void fabric_deadlock_begin(struct fabric *fabric)
{
    deadlock_watch_begin(&fabric->deadlocks);
}

void fabric_deadlock_count(struct fabric *fabric)
{
    deadlock_watch_count(&fabric->deadlocks);
}

void fabric_deadlock_strike(struct fabric *fabric)
{
    deadlock_watch_strike(&fabric->deadlocks);
}

bool fabric_deadlock_struck(struct fabric *fabric)
{
    return deadlock_watch_struck(&fabric->deadlocks);
}

void fabric_deadlock_follow(struct fabric *fabric)
{
    deadlock_watch_follow(&fabric->deadlocks);
}

void fabric_deadlock_report(struct fabric *fabric, int64_t now_ps)
{
    deadlock_watch_report(&fabric->deadlocks, now_ps);
}

void fabric_free_packets(struct fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->process_count; i++)
        free(fabric->packets[i].bytes);
}
