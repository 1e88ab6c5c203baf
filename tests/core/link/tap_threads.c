/* One thread captures frames into a ring that overflows; another thread reads them and the count of
 * missed frames meanwhile. Prints the numbers of frames captured, read, and missed. The thread
 * sanitizer watches both. */
#include <pthread.h>
#include <stdio.h>

#include "link/tap.h"

enum { ROUNDS = 2000, FRAME = 100, RECORD = 136, RING = 1 << 12, PORTS = 2, CAPTURED = 1 };

static struct tap tap;
static bool over;

static void *capture(void *captured)
{
    uint8_t bytes[FRAME] = {0};
    struct frame frame = {.bytes = bytes, .length = FRAME, .stored = FRAME};
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        tap_frame(&tap, CAPTURED, &frame, TAP_IN, 0);
        ++*(uint64_t *)captured;
    }
    return NULL;
}

static size_t take_out(void)
{
    const uint8_t *bytes;
    size_t size = tap_pending(&tap, &bytes);
    tap_taken(&tap, size);
    return size;
}

int main(void)
{
    pthread_t thread;
    uint64_t captured = 0, taken = 0;
    if (!tap_init(&tap, RING, PORTS) || pthread_create(&thread, NULL, capture, &captured))
        return 2;
    for (int rounds = 0; rounds < ROUNDS || !tap_missed_at(&tap, CAPTURED); rounds++)
        taken += take_out();
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    for (size_t size; (size = take_out());)
        taken += size;
    printf("%llu %llu %llu\n", (unsigned long long)captured, (unsigned long long)taken / RECORD,
           (unsigned long long)tap_missed(&tap));
    tap_free(&tap);
    return 0;
}
