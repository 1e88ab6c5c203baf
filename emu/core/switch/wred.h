/* The WRED marking curve. Both the core's marker and the eBPF program on the switch ports include
 * it. Only integers, since BPF has no floating point.
 *
 *     probability
 *        1 |                ,-------
 *          |                |
 *     pmax |              ,-'
 *          |          ,-'
 *        0 '-------'-------------- queue
 *                kmin    kmax
 *
 * The curve uses the instantaneous depth of the egress queue, as DCQCN requires (Zhu et al.,
 * SIGCOMM'15, 3.1), not RED's moving average. */
#ifndef EMU_SWITCH_WRED_H
#define EMU_SWITCH_WRED_H

struct wred {
    unsigned int kmin_bytes;
    unsigned int kmax_bytes;
    unsigned int pmax_2_32; /* the probability at kmax, times 2^32 - 1 */
    unsigned int seed;      /* of the random numbers of this port */
    unsigned int enabled;
};

/* The curves of one port, as the eBPF program reads them. */
enum { WRED_QUEUES = 8 };

struct wred_curves {
    struct wred wred[WRED_QUEUES];
    unsigned char queue_of[WRED_QUEUES]; /* by priority */
};

/* The part of a packet that its random number depends on: the IPv4 header from its source address
 * on, and the words after it. In a RoCEv2 packet these are addresses, ports, queue pair and PSN. */
enum { WRED_DRAW_OFFSET = 12, WRED_DRAW_WORDS = 7 };

/* The random number of a packet at this port: MurmurHash3 of the seed and the packet. It is the
 * same in both markers, in any order of packets, and in every run. */
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
