#include "sim/mailbox.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

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

bool mailbox_put(struct mailbox *box, const struct mail *mail)
{
    if (box->count == box->capacity && !grow(box))
        return false;
    box->mails[box->count++] = *mail;
    return true;
}

void mailbox_open_all(struct mailbox *box)
{
    for (uint32_t i = 0; i < box->count; i++)
        box->mails[i].kind->open(&box->mails[i]);
    box->count = 0;
}

void mailbox_free(struct mailbox *box)
{
    free(box->mails);
}
