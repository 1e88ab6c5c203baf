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
#ifndef EMU_WRED_H
#define EMU_WRED_H

struct wred {
    unsigned int kmin_bytes;
    unsigned int kmax_bytes;
    unsigned int pmax_2_32; /* the probability at kmax, times 2^32 - 1 */
    unsigned int enabled;
};

/* Whether a packet that finds `depth_bytes` queued is marked; `random` is
 * uniform over 32 bits. */
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
