/* Mail from one part of a fabric to another (part.h), in the order in which it was posted. */
#ifndef EMU_SIM_MAILBOX_H
#define EMU_SIM_MAILBOX_H

#include "sim/clock.h"

struct mail;
struct part;

/* What mail carries. A part that another process runs gets its mail as bytes (mail_bytes.h); both
 * processes have the same fabric. */
struct mail_kind {
    /* In the part that the mail is for. */
    void (*open)(const struct mail *mail);
    /* The size of the mail as bytes. */
    uint32_t (*size)(const struct mail *mail);
    /* Writes the mail as bytes, and gives up what it carries. `from` has posted it. */
    void (*write)(const struct mail *mail, struct part *from, uint8_t *bytes);
    /* Makes mail for `to` from such bytes. `places`: where it may go, as the kind says. False when
     * there is no memory. */
    bool (*read)(struct mail *mail, struct part *to, const void *places, const uint8_t *bytes);
};

struct mail {
    const struct mail_kind *kind;
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
