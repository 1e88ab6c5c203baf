/* Records the events of standard input, one per line, and prints the timeline.
 *
 *     SINCE LATE KEPT LOSS FRAMES DROPPED */
#include <inttypes.h>
#include <stdio.h>

#include "observe/latency_histogram.h"

static struct timeline timeline;

int main(void)
{
    int64_t since, late, kept, frames, dropped;
    int loss;
    while (scanf("%" SCNd64 " %" SCNd64 " %" SCNd64 " %d %" SCNd64 " %" SCNd64, &since, &late,
                 &kept, &loss, &frames, &dropped) == 6) {
        struct interval *at = timeline_at(&timeline, since);
        note_worst(&at->late, late);
        note_worst(&at->kept, kept);
        at->lost[loss] += frames;
        at->dropped += dropped;
    }
    printf("%" PRId64 "\n", timeline.slot_ns);
    for (int slot = 0; slot < TIMELINE_SLOTS; slot++) {
        const struct interval *at = &timeline.slots[slot];
        printf("%" PRId64 " %" PRId64, at->late, at->kept);
        for (int way = 0; way < LOSSES; way++)
            printf(" %" PRId64, at->lost[way]);
        printf(" %" PRId64 "\n", at->dropped);
    }
}
