/* Mail from one part of a fabric to another (part.h), in the order in which it was posted. */
#ifndef EMU_SIM_MAILBOX_H
#define EMU_SIM_MAILBOX_H

#include "sim/clock.h"

/* `open` is called in the part that the mail is for, with the mail itself. */
struct mail {
    void (*open)(const struct mail *mail);
    void *to, *what;
    picoseconds at; /* when it has an effect; NEVER: by itself it has none */
};

struct mailbox {
    struct mail *mails;
    uint32_t count, capacity;
};

/* False when there is no memory. */
bool mailbox_put(struct mailbox *box, const struct mail *mail);
/* Opens all mail; then the box is empty. */
void mailbox_open_all(struct mailbox *box);
void mailbox_free(struct mailbox *box);

#endif
