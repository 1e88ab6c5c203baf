/* Memory for packets, kept by the thread that frees it.
 *
 * For each read of a port, Open vSwitch allocates memory for 32 packets, and frees what it did not
 * need. The C library keeps 7 pieces of freed memory of a size for a thread, and none above 1032
 * bytes, while a packet of a lab may have 4,200. Others go back to the heap, where neighbours are
 * merged and split again. Here a thread keeps more and larger memory, in lists by size:
 *
 *   size of a chunk    256    272    288   …   8176
 *                       ▼
 *                     freed ─▶ freed ─▶ …          the last freed is the next allocated
 *
 * All memory is the C library's, so that its other functions can use and free it.
 *
 * This library is loaded before the C library (LD_PRELOAD). */
#include <malloc.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))
#define TLS static __thread __attribute__((tls_model("initial-exec")))

/* glibc: chunks are multiples of 16 bytes, of which 8 are its own. */
#define CHUNK 16
#define HEADER 8
#define FIRST_CHUNK 256
#define END_OF_CHUNKS 8192
#define MOST_KEPT_BYTES (1 << 20)

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);

struct freed {
    struct freed *next;
};

TLS struct freed *kept[(END_OF_CHUNKS - FIRST_CHUNK) / CHUNK];
TLS size_t kept_bytes;

static size_t chunk_for(size_t size)
{
    return (size + HEADER + CHUNK - 1) & ~(size_t)(CHUNK - 1);
}

static size_t chunk_of(void *memory)
{
    return malloc_usable_size(memory) + HEADER;
}

/* The list of chunks of this size; NULL: such memory is not kept. */
static struct freed **list_for(size_t chunk)
{
    return chunk >= FIRST_CHUNK && chunk < END_OF_CHUNKS ? &kept[(chunk - FIRST_CHUNK) / CHUNK]
                                                         : NULL;
}

EXPORTED void *malloc(size_t size)
{
    size_t chunk = size < END_OF_CHUNKS ? chunk_for(size) : END_OF_CHUNKS;
    struct freed **list = list_for(chunk);
    if (!list || !*list)
        return __libc_malloc(size);
    struct freed *memory = *list;
    *list = memory->next;
    kept_bytes -= chunk;
    return memory;
}

EXPORTED void free(void *memory)
{
    size_t chunk = memory ? chunk_of(memory) : 0;
    struct freed **list = list_for(chunk);
    if (!list || kept_bytes + chunk > MOST_KEPT_BYTES) {
        __libc_free(memory);
        return;
    }
    struct freed *freed = memory;
    freed->next = *list;
    *list = freed;
    kept_bytes += chunk;
}
