#include "sim/arena.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes)
#endif

#include "sim/cache_line.h"

enum { HUGE_PAGE = 2 << 20 };

/* At its own beginning. */
struct arena_chunk {
    struct arena_chunk *older;
    void *mapped;
    size_t mapped_size;
};

/* A piece that was given back, at its own beginning. */
struct arena_spare {
    struct arena_spare *alike; /* the next of this size */
    struct arena_spare *other; /* of the first of each size: that of another */
    size_t size;
};

static_assert(sizeof(struct arena_spare) <= CACHE_LINE, "it has room in the smallest piece");

#ifdef __SANITIZE_ADDRESS__
enum { FENCE = CACHE_LINE }; /* between pieces, so that an access beyond one is found */
#else
enum { FENCE = 0 };
#endif

static size_t whole(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* A chunk begins where a huge page can. */
static bool add_chunk(struct arena *arena, size_t needed)
{
    size_t size = whole(needed + CACHE_LINE, HUGE_PAGE), mapped_size = size + HUGE_PAGE;
    void *mapped = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    struct arena_chunk *chunk = (void *)whole((uintptr_t)mapped, HUGE_PAGE);
    madvise(chunk, size, MADV_HUGEPAGE); /* a kernel without them is only slower */
    *chunk = (struct arena_chunk){arena->chunks, mapped, mapped_size};
    arena->chunks = chunk;
    arena->fresh = (uint8_t *)chunk + CACHE_LINE;
    arena->end = (uint8_t *)chunk + size;
    return true;
}

/* What points to the first spare piece of that size, or would. */
static struct arena_spare **spares_of(struct arena *arena, size_t size)
{
    struct arena_spare **place = &arena->spares;
    while (*place && (*place)->size != size)
        place = &(*place)->other;
    return place;
}

/* NULL when there is no spare piece of that size. */
static void *take_spare(struct arena *arena, size_t size)
{
    struct arena_spare **place = spares_of(arena, size), *spare = *place;
    if (!spare)
        return NULL;
    if (spare->alike)
        spare->alike->other = spare->other;
    *place = spare->alike ? spare->alike : spare->other;
    ASAN_UNPOISON_MEMORY_REGION(spare, size);
    return memset(spare, 0, size);
}

void arena_give_back(struct arena *arena, void *piece, size_t count, size_t size)
{
    size_t taken = whole(count * size, CACHE_LINE);
    if (!piece || !taken)
        return;
    struct arena_spare **place = spares_of(arena, taken), *spare = piece;
    *spare = (struct arena_spare){
        .alike = *place, .other = *place ? (*place)->other : NULL, .size = taken};
    *place = spare;
    ASAN_POISON_MEMORY_REGION(spare + 1, taken - sizeof *spare);
}

void *arena_take(struct arena *arena, size_t count, size_t size)
{
    size_t taken = whole(count * size, CACHE_LINE);
    void *spare = arena->spares ? take_spare(arena, taken) : NULL;
    if (spare)
        return spare;
    if ((size_t)(arena->end - arena->fresh) < taken + FENCE && !add_chunk(arena, taken + FENCE))
        return NULL;
    uint8_t *piece = arena->fresh;
    arena->fresh += taken + FENCE;
    ASAN_POISON_MEMORY_REGION(piece + taken, FENCE);
    return piece;
}

void arena_free(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunks, *older; chunk; chunk = older) {
        older = chunk->older;
        ASAN_UNPOISON_MEMORY_REGION(chunk->mapped, chunk->mapped_size);
        munmap(chunk->mapped, chunk->mapped_size);
    }
    *arena = (struct arena){0};
}
