#include "sim/part.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

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
            free(part->posted[turn][i].mails);
        free(part->posted[turn]);
    }
}

SELDOM static bool grow(struct mailbox *box)
{
    uint32_t capacity = box->capacity ? 2 * box->capacity : FIRST_CAPACITY;
    struct mail *mails = realloc(box->mails, capacity * sizeof *mails);
    if (!mails)
        return false;
    box->mails = mails;
    box->capacity = capacity;
    return true;
}

void part_post(struct part *from, const struct part *to, struct mail mail)
{
    struct mailbox *box = &from->posted[from->turn][to->number];
    if (box->count == box->capacity && !grow(box)) {
        from->out_of_memory = true;
        return;
    }
    box->mails[box->count++] = mail;
    if (mail.at < from->earliest)
        from->earliest = mail.at;
}

/* Opens the mail that came from one part, in the order in which it was posted. */
static void open_mail(struct mailbox *box)
{
    for (uint32_t i = 0; i < box->count; i++)
        box->mails[i].open(&box->mails[i]);
    box->count = 0;
}

uint64_t part_run(struct part *part, struct part *const *parts, picoseconds until)
{
    uint8_t read = part->turn;
    part->turn = !part->turn;
    part->pool.turn = part->turn;
    part->earliest = NEVER;
    for (uint32_t i = 0; i < part->count; i++) {
        open_mail(&parts[i]->posted[read][part->number]);
        frame_pool_take_back(&part->pool, &parts[i]->pool, read);
    }
    return clock_run_until(&part->clock, until);
}

picoseconds part_next_event(struct part *part)
{
    picoseconds next = clock_next_deadline(&part->clock);
    return next < part->earliest ? next : part->earliest;
}
