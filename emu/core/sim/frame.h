/* A frame on its way through the fabric, and the pool it is taken from.
 *
 * A frame belongs to exactly one holder at a time, which passes it on or frees
 * it. Its bytes are written once by the sender and travel by
 * pointer; switches change only header fields in place.
 *
 * A NIC may leave a payload out (nic_api.h): then the frame holds its headers
 * only, `stored` bytes of `length`. Counts and times follow the length; code
 * that reads bytes must stay within `stored`.
 *
 *     kind                 bytes[] holds                     on the wire
 *     FRAME_ETHERNET       destination MAC .. payload        + preamble, FCS, gap
 *     FRAME_IB             LRH .. ICRC, VCRC                 as it is
 *     FRAME_IB_LINK        the 6-byte flow-control packet    as it is
 */
#ifndef EMU_SIM_FRAME_H
#define EMU_SIM_FRAME_H

#include <assert.h>

#include "sim/arena.h"
#include "sim/clock.h"

enum frame_kind { FRAME_ETHERNET, FRAME_IB, FRAME_IB_LINK };

enum {
    ETHERNET_MIN = 60,      /* shortest frame without its FCS */
    ETHERNET_OVERHEAD = 24, /* preamble and SFD 8, FCS 4, inter-frame gap 12 */
    SMALL_FRAME = 192,      /* bytes of a frame in a slot of the pool's small class */
    FRAME_HOMES = 256,      /* numbers of pools */
    CLASSES = 16,           /* 8 Ethernet priorities, or 16 virtual lanes */
};

/* The ingress buffer that a frame occupies in its present switch. */
struct charge {
    uint16_t in_port; /* port number in that switch */
    uint8_t tc;       /* priority or VL it was charged to */
    bool lossless;    /* that port makes its far end wait rather than drop */
    uint32_t bytes;   /* 0: nothing is charged */
};

struct frame {
    struct frame *next;
    uint8_t *bytes;
    picoseconds tail_at; /* when its last bit reached, or will reach, this node */
    picoseconds due_at;  /* when the holder acts on it next */
    uint64_t id;         /* of captures (tap.h); 0: none has seen it */
    uint32_t length;     /* bytes on the wire, as a capture shows them */
    uint16_t stored;     /* of these, bytes that are there: all, or the headers */
    uint16_t out_port;   /* in a switch: the port it leaves by */
    struct charge charge;
    uint8_t kind;  /* enum frame_kind */
    uint8_t tc;    /* priority 0-7 (Ethernet) or VL 0-15 (InfiniBand) */
    uint8_t ip;    /* in a switch: where its IPv4 header begins; 0: it has none */
    bool small;    /* its slot belongs to the pool's small class */
    bool corrupt;  /* damaged on a cable: its FCS or VCRC would be wrong */
    uint8_t home;  /* number of the pool that its slot belongs to */
    uint16_t cuts; /* on a cable to another process: `cuts` of the line when it left */
};

static_assert(sizeof(struct frame) <= 64, "a frame's state fits into a cache line");

/* Whether its payload is there too, and its CRCs with it. */
static inline bool frame_is_whole(const struct frame *frame)
{
    return frame->stored == frame->length;
}

/* Bytes a frame keeps its link busy for. */
static inline uint32_t wire_bytes(uint8_t kind, uint32_t length)
{
    if (kind != FRAME_ETHERNET)
        return length;
    return (length < ETHERNET_MIN ? ETHERNET_MIN : length) + ETHERNET_OVERHEAD;
}

/* Slots of one size: a list of free ones, and a range of unused ones. */
struct frame_slots {
    struct frame *free;
    uint8_t *fresh, *end;
    uint32_t room; /* bytes of a frame that a slot holds */
};

/* Frames of one pool that another pool frees, on their way back. */
struct returned_frames {
    struct frame *first[2], *last[2]; /* large and small ones; NULL: none */
    uint32_t count;
};

/* The pools of a fabric in parts have numbers. A frame that passes to another part is freed at
 * that part's pool, which gives it back in the next window (part.h). */
struct frame_pool {
    struct frame_slots small, large;
    uint64_t exhausted; /* requests that found the pool empty */
    uint32_t in_use;
    int32_t link_in_use; /* of these, flow-control packets; over all pools of a fabric */
    uint8_t number;
    uint8_t turn;                        /* which of the two sets is written to */
    struct returned_frames *returned[2]; /* by the number of their pool; NULL: one pool */
};

/* Set-up only. Room for frames is address space; memory is used as frames are.
 * Returns false when there is none. */
bool frame_pool_init(struct frame_pool *pool, struct arena *arena, uint32_t small, uint32_t large,
                     uint32_t large_size);

/* Set-up only: the pool becomes number `number` of `count`. False when there is no memory. */
bool frame_pool_join(struct frame_pool *pool, struct arena *arena, uint32_t number, uint32_t count);

/* Takes frames back that another pool has freed in the previous window, whose turn was `turn`. */
void frame_pool_take_back(struct frame_pool *pool, struct frame_pool *from, uint8_t turn);

/* How many frames of other pools, of `count` in all, are on their way back. */
uint32_t frame_pool_returned(const struct frame_pool *pool, uint32_t count);

/* Touches the memory of the next `frames` unused slots of each class. */
void frame_pool_prefault(struct frame_pool *pool, uint32_t frames);

/* A frame of `length` bytes that holds the first `stored` of them. NULL when
 * the pool is empty or `stored` exceeds the largest slot. The bytes are not
 * cleared; charge is empty, the rest is zero. */
struct frame *frame_new_stored(struct frame_pool *pool, uint8_t kind, uint32_t length,
                               uint32_t stored);
void frame_free(struct frame_pool *pool, struct frame *frame);

/* A whole frame. */
static inline struct frame *frame_new(struct frame_pool *pool, uint8_t kind, uint32_t length)
{
    return frame_new_stored(pool, kind, length, length);
}

/* First in, first out. */
struct frame_list {
    struct frame *first, *last; /* NULL: it is empty */
};

static inline void list_push(struct frame_list *list, struct frame *frame)
{
    frame->next = NULL;
    if (list->last)
        list->last->next = frame;
    else
        list->first = frame;
    list->last = frame;
}

/* Of a list that is not empty. */
static inline struct frame *list_pop(struct frame_list *list)
{
    struct frame *frame = list->first;
    assert(frame);
    list->first = frame->next;
    if (!list->first)
        list->last = NULL;
    return frame;
}

/* A list that knows how much is in it. */
struct frame_queue {
    struct frame_list frames;
    uint32_t count;
    uint32_t peak_bytes; /* the most that was ever in it, if its owner notes that */
    uint64_t bytes;
};

static inline void queue_push(struct frame_queue *queue, struct frame *frame)
{
    list_push(&queue->frames, frame);
    queue->count++;
    queue->bytes += frame->length;
}

/* Of a queue that is not empty. */
static inline struct frame *queue_pop(struct frame_queue *queue)
{
    struct frame *frame = list_pop(&queue->frames);
    queue->count--;
    queue->bytes -= frame->length;
    return frame;
}

#endif
