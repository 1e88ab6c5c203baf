/* The WRED marking curve, written once: included by the shim's marker and by
 * the eBPF program on the switch ports. Integers only, as BPF has no others.
 *
 *     probability
 *        1 |                ,-------
 *          |                |
 *     pmax |              ,-'
 *          |          ,-'
 *        0 '-------'-------------- queue
 *                kmin    kmax
 *
 * On the instantaneous depth of the egress queue the packet joins, as DCQCN
 * wants it (Zhu et al., SIGCOMM'15, 3.1), not on RED's moving average. */
#ifndef EMU_SWITCH_WRED_H
#define EMU_SWITCH_WRED_H

struct wred {
    unsigned int kmin_bytes;
    unsigned int kmax_bytes;
    unsigned int pmax_2_32; /* the probability at kmax, times 2^32 - 1 */
    unsigned int seed;      /* of this port's draws */
    unsigned int enabled;
};

/* Of one port, as the eBPF program has them. */
enum { WRED_QUEUES = 8 };

struct wred_curves {
    struct wred wred[WRED_QUEUES];
    unsigned char queue_of[WRED_QUEUES]; /* by priority */
};

/* What a draw is made from: an IPv4 header from its source address on and what
 * follows it, so a RoCEv2 packet's addresses, ports, queue pair and PSN. */
enum { WRED_DRAW_OFFSET = 12, WRED_DRAW_WORDS = 7 };

/* A random number that is a packet's own at this port: MurmurHash3 of the seed
 * and the packet. Whoever marks draws the same, in any order, and so does the
 * next run. */
static inline unsigned int wred_draw(const struct wred *wred, const unsigned int *words)
{
    unsigned int hash = wred->seed;
    for (int i = 0; i < WRED_DRAW_WORDS; i++) {
        unsigned int word = words[i] * 0xCC9E2D51u;
        word = word << 15 | word >> 17;
        hash ^= word * 0x1B873593u;
        hash = hash << 13 | hash >> 19;
        hash = hash * 5 + 0xE6546B64u;
    }
    hash ^= hash >> 16;
    hash *= 0x85EBCA6Bu;
    hash ^= hash >> 13;
    hash *= 0xC2B2AE35u;
    return hash ^ hash >> 16;
}

/* Whether a packet that finds `depth_bytes` queued and draws `random` is marked. */
static inline int wred_marks(const struct wred *wred, unsigned int depth_bytes, unsigned int random)
{
    if (!wred->enabled || depth_bytes <= wred->kmin_bytes)
        return 0;
    if (depth_bytes >= wred->kmax_bytes)
        return 1;
    unsigned long long above = depth_bytes - wred->kmin_bytes;
    unsigned long long range = wred->kmax_bytes - wred->kmin_bytes;
    return random < (unsigned long long)wred->pmax_2_32 * above / range;
}

#endif
