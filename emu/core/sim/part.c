#include "sim/part.h"

#include <stdlib.h>

bool part_init(struct part *part, uint32_t number, uint32_t count)
{
    clock_init(&part->clock);
    part->number = number;
    part->count = count;
    part->earliest = NEVER;
    for (int turn = 0; turn < 2; turn++) {
        part->posted[turn] = calloc(count, sizeof *part->posted[turn]);
        if (!part->posted[turn])
            return false;
    }
    return true;
}

void part_free(struct part *part)
{
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; part->posted[turn] && i < part->count; i++)
            mailbox_free(&part->posted[turn][i]);
        free(part->posted[turn]);
    }
}

void part_post(struct part *from, const struct part *to, struct mail mail)
{
    if (!mailbox_put(&from->posted[from->turn][to->number], &mail))
        from->out_of_memory = true;
    if (mail.at < from->earliest)
        from->earliest = mail.at;
}

void part_take_in(const struct part *to, struct part *from, struct mail mail)
{
    if (!mailbox_put(&from->posted[to->turn][to->number], &mail))
        from->out_of_memory = true;
}

uint64_t part_run(struct part *part, struct part *const *parts, picoseconds until)
{
    uint8_t read = part->turn;
    part->turn = !part->turn;
    part->pool.turn = part->turn;
    part->earliest = NEVER;
    for (uint32_t i = 0; i < part->count; i++) {
        mailbox_open_all(&parts[i]->posted[read][part->number]);
        frame_pool_take_back(&part->pool, &parts[i]->pool, read);
    }
    return clock_run_until(&part->clock, until);
}

picoseconds part_next_event(struct part *part)
{
    picoseconds next = clock_next_deadline(&part->clock);
    return next < part->earliest ? next : part->earliest;
}
