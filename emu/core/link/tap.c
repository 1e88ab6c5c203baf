#include "link/tap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ID_COUNT_BITS = 40 };

bool tap_init(struct tap *tap, size_t size, uint32_t ports)
{
    assert((size & (size - 1)) == 0);
    *tap = (struct tap){.size = size};
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    tap->ring = ring == MAP_FAILED ? NULL : ring;
    tap->missed_at = calloc(ports, sizeof *tap->missed_at);
    tap->ids = calloc(ports, sizeof *tap->ids);
    if (tap->ring && tap->missed_at && tap->ids)
        return true;
    tap_free(tap);
    return false;
}

void tap_free(struct tap *tap)
{
    if (tap->ring)
        munmap(tap->ring, tap->size);
    free(tap->missed_at);
    free(tap->ids);
    *tap = (struct tap){0};
}

/* Copies bytes into the ring, at `offset` in the current record. */
static void put(struct tap *tap, size_t offset, const void *bytes, size_t count)
{
    size_t at = (tap->head + offset) & (tap->size - 1), first = tap->size - at;
    if (first > count)
        first = count;
    memcpy(tap->ring + at, bytes, first);
    memcpy(tap->ring, (const uint8_t *)bytes + first, count - first);
}

/* Only the capturing thread writes these counts. */
static void count_one(uint64_t *count)
{
    __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
}

static void give_id(struct tap *tap, uint32_t port_index, struct frame *frame)
{
    frame->id = (uint64_t)port_index << ID_COUNT_BITS | ++tap->ids[port_index];
}

void tap_frame(struct tap *tap, uint32_t port_index, struct frame *frame,
               enum tap_direction direction, picoseconds at)
{
    if (!frame->id)
        give_id(tap, port_index, frame);
    struct {
        int64_t time_ps;
        uint64_t packet_id;
        uint32_t port_index, length, stored;
        uint8_t kind, direction;
        uint16_t zero;
    } header = {at,          frame->id,          port_index, frame->length, frame->stored,
                frame->kind, (uint8_t)direction, 0};
    static_assert(sizeof header == TAP_HEADER_BYTES, "the record's layout is a file format");
    static const uint8_t padding[8];
    size_t pad = -frame->stored & 7, whole = sizeof header + frame->stored + pad;
    uint64_t taken = __atomic_load_n(&tap->tail, __ATOMIC_ACQUIRE);
    if (tap->size - (tap->head - taken) < whole) {
        count_one(&tap->missed);
        count_one(&tap->missed_at[port_index]);
        return;
    }
    put(tap, 0, &header, sizeof header);
    put(tap, sizeof header, frame->bytes, frame->stored);
    put(tap, sizeof header + frame->stored, padding, pad);
    __atomic_store_n(&tap->head, tap->head + whole, __ATOMIC_RELEASE);
}

size_t tap_pending(const struct tap *tap, const uint8_t **bytes)
{
    *bytes = NULL;
    if (!tap->ring)
        return 0; /* nothing is captured */
    uint64_t written = __atomic_load_n(&tap->head, __ATOMIC_ACQUIRE);
    size_t at = tap->tail & (tap->size - 1), count = (size_t)(written - tap->tail);
    *bytes = tap->ring + at;
    return count < tap->size - at ? count : tap->size - at;
}

void tap_taken(struct tap *tap, size_t size)
{
    __atomic_store_n(&tap->tail, tap->tail + size, __ATOMIC_RELEASE);
}

size_t tap_waiting(const struct tap *tap)
{
    uint64_t taken = __atomic_load_n(&tap->tail, __ATOMIC_RELAXED);
    return (size_t)(__atomic_load_n(&tap->head, __ATOMIC_RELAXED) - taken);
}

uint64_t tap_missed(const struct tap *tap)
{
    return __atomic_load_n(&tap->missed, __ATOMIC_RELAXED);
}

uint64_t tap_missed_at(const struct tap *tap, uint32_t port_index)
{
    return tap->ring ? __atomic_load_n(&tap->missed_at[port_index], __ATOMIC_RELAXED) : 0;
}
