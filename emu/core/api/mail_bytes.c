#include "api/mail_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096, ALIGNMENT = 8 };

struct mail_header {
    uint32_t size;
    uint16_t kind, from, to, zero[3];
};

static size_t padded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Makes room for `more` bytes. */
static bool make_room(struct packet_of_mail *packet, size_t more)
{
    size_t capacity = packet->capacity ? packet->capacity : FIRST_BYTES;
    while (capacity < packet->size + more)
        capacity *= 2;
    if (capacity == packet->capacity)
        return true;
    uint8_t *bytes = realloc(packet->bytes, capacity);
    if (!bytes)
        return false;
    packet->bytes = bytes;
    packet->capacity = capacity;
    return true;
}

static uint16_t number_of(const struct mail_kind *kind, const struct mail_reader *readers)
{
    uint16_t number = 0;
    while (readers[number].kind != kind)
        number++;
    assert(number < MAIL_KINDS);
    return number;
}

static bool pack_mail(struct packet_of_mail *packet, const struct mail_reader *readers,
                      const struct mail *mail, struct part *from, const struct part *to)
{
    size_t size = padded(sizeof(struct mail_header) + mail->kind->size(mail));
    if (!make_room(packet, size))
        return false;
    struct mail_header header = {.size = (uint32_t)size,
                                 .kind = number_of(mail->kind, readers),
                                 .from = (uint16_t)from->number,
                                 .to = (uint16_t)to->number};
    uint8_t *bytes = packet->bytes + packet->size;
    memcpy(bytes, &header, sizeof header);
    mail->kind->write(mail, from, bytes + sizeof header);
    packet->size += size;
    return true;
}

static bool pack_box(struct packet_of_mail *packet, const struct mail_reader *readers,
                     struct part *from, const struct part *to)
{
    struct mailbox *box = &from->posted[from->turn][to->number];
    for (uint32_t i = 0; i < box->count; i++)
        if (!pack_mail(packet, readers, &box->mails[i], from, to))
            return false;
    box->count = 0;
    return true;
}

bool mail_pack(struct packet_of_mail *packet, const struct mail_reader *readers,
               struct part *const *own, uint32_t own_count, struct part *const *to, uint32_t count,
               picoseconds next_event)
{
    packet->size = sizeof(struct packet_header);
    if (!make_room(packet, 0))
        return false;
    for (uint32_t i = 0; i < own_count; i++)
        for (uint32_t j = 0; j < count; j++)
            if (!pack_box(packet, readers, own[i], to[j]))
                return false;
    struct packet_header header = {.next_event = next_event, .size = packet->size};
    memcpy(packet->bytes, &header, sizeof header);
    return true;
}

bool mail_unpack(const uint8_t *bytes, const struct mail_reader *readers, struct part *const *parts)
{
    struct packet_header packet;
    memcpy(&packet, bytes, sizeof packet);
    const uint8_t *end = bytes + packet.size;
    struct mail_header header;
    for (bytes += sizeof packet; bytes < end; bytes += header.size) {
        memcpy(&header, bytes, sizeof header);
        const struct mail_reader *reader = &readers[header.kind];
        struct mail mail = {.kind = reader->kind};
        struct part *to = parts[header.to];
        if (!reader->kind->read(&mail, to, reader->places, bytes + sizeof header))
            return false;
        part_take_in(to, parts[header.from], mail);
    }
    return true;
}
