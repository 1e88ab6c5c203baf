/* The memory of queues that the program shares with the NICs.
 *
 * A child has it, too, and would take its parent's completions by polling. So it gets memory of its
 * own in the same places. Only the numbers at the beginning of each queue are those of the parent
 * at the fork, and the child sees its parent's queues empty. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library.h"

enum { NUMBERS = sizeof(struct uverbs_cq) };
_Static_assert(sizeof(struct uverbs_queue) <= NUMBERS, "the numbers of a queue of requests");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue_memory {
    void *memory;
    uint64_t bytes;
    struct queue_memory *next;
} * all;

int new_queue_memory(const char *name, uint64_t bytes, void **memory)
{
    struct queue_memory *made = malloc(sizeof *made);
    int file = made ? new_memory(name, bytes, memory) : -1;
    if (file < 0) {
        free(made);
        return -1;
    }
    pthread_mutex_lock(&lock);
    *made = (struct queue_memory){*memory, bytes, all};
    all = made;
    pthread_mutex_unlock(&lock);
    return file;
}

void free_queue_memory(void *memory)
{
    pthread_mutex_lock(&lock);
    struct queue_memory **at = &all;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    struct queue_memory *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    if (found)
        munmap(found->memory, found->bytes);
    free(found);
}

void own_queue_memory(void)
{
    uint8_t numbers[NUMBERS];
    for (const struct queue_memory *one = all; one; one = one->next) {
        size_t bytes = one->bytes < NUMBERS ? one->bytes : NUMBERS;
        memcpy(numbers, one->memory, bytes);
        if (mmap(one->memory, one->bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
            memcpy(one->memory, numbers, bytes);
    }
    pthread_mutex_init(&lock, NULL);
}
