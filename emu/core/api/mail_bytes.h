/* Mail between parts that several processes run, as bytes.
 *
 * Every process has the whole fabric and runs some of its parts, one after another in number; the
 * others stand still there. After a window each process packs the mail of its own parts for each of
 * the others, with the time of its next event, and unpacks what it gets from them: the mail lies
 * then in the boxes of the parts that posted it, as if they ran here.
 *
 *     a packet   next_event i64 | size u64, of all | mail ...
 *     mail       size u32, of all | kind u16 | from u16 | to u16 | zero u16 x 3 | bytes ...
 *
 * padded to 8 bytes, in the byte order of the machine: all have the same. */
#ifndef EMU_API_MAIL_BYTES_H
#define EMU_API_MAIL_BYTES_H

#include "sim/part.h"

enum { MAIL_KINDS = 2 };

/* A kind of mail, and the places that its mail may go to. */
struct mail_reader {
    const struct mail_kind *kind;
    const void *places;
};

/* Grows as needed. */
struct packet_of_mail {
    uint8_t *bytes;
    size_t size, capacity;
};

struct packet_header {
    int64_t next_event;
    uint64_t size;
};

/* Packs all mail to `count` parts from `first` on that the parts `own` have posted, and takes it
 * out of their boxes. False when there is no memory. */
bool mail_pack(struct packet_of_mail *packet, const struct mail_reader *readers,
               struct part *const *own, uint32_t own_count, struct part *const *to, uint32_t count,
               picoseconds next_event);

/* Puts the mail of a packet into its boxes. False when there is no memory. */
bool mail_unpack(const uint8_t *bytes, const struct mail_reader *readers,
                 struct part *const *parts);

#endif
