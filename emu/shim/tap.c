#include "tap.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

bool tap_init(struct tap *tap, size_t size)
{
    assert((size & (size - 1)) == 0);
    *tap = (struct tap){.size = size};
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    tap->ring = ring == MAP_FAILED ? NULL : ring;
    return tap->ring != NULL;
}

void tap_free(struct tap *tap)
{
    if (tap->ring)
        munmap(tap->ring, tap->size);
    *tap = (struct tap){0};
}

static void put(struct tap *tap, const void *bytes, size_t count)
{
    size_t at = tap->head & (tap->size - 1), first = tap->size - at;
    if (first > count)
        first = count;
    memcpy(tap->ring + at, bytes, first);
    memcpy(tap->ring, (const uint8_t *)bytes + first, count - first);
    tap->head += count;
}

void tap_frame(struct tap *tap, uint32_t port_index, const struct frame *frame,
               enum tap_direction direction, picoseconds at)
{
    struct {
        int64_t time_ps;
        uint64_t packet_id;
        uint32_t port_index, length, stored;
        uint8_t kind, direction;
        uint16_t zero;
    } header = {at,          frame->id,          port_index, frame->length, frame->length,
                frame->kind, (uint8_t)direction, 0};
    static_assert(sizeof header == TAP_HEADER_BYTES, "the record's layout is a file format");
    static const uint8_t padding[8];
    size_t pad = -frame->length & 7;
    if (tap->size - (tap->head - tap->tail) < sizeof header + frame->length + pad) {
        tap->missed++;
        return;
    }
    put(tap, &header, sizeof header);
    put(tap, frame->bytes, frame->length);
    put(tap, padding, pad);
}

size_t tap_pending(const struct tap *tap, const uint8_t **bytes)
{
    size_t at = tap->tail & (tap->size - 1), count = (size_t)(tap->head - tap->tail);
    *bytes = tap->ring + at;
    return count < tap->size - at ? count : tap->size - at;
}

void tap_taken(struct tap *tap, size_t size)
{
    assert(size <= tap->head - tap->tail);
    tap->tail += size;
}
