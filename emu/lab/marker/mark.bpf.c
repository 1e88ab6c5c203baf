/* The marker on a switch port: WRED at egress, at the clsact egress hook.
 *
 *   Open vSwitch ──▶ leaf1-eth1 ──[here]──▶ the other end in the shim, with the egress queue
 *
 * An ECN-capable packet (RFC 3168: ECT) is marked CE with the probability of the WRED curve at the
 * depth of the queue that it is about to join. The shim posts the depth of every queue in a map
 * that it shares with this program. The curve is that of the shim, from the same header. The
 * priority of a packet is in the transit tag that the shim wrote into its source MAC (transit.h):
 *
 *     06 : KP PP : HH : SS SS    K: priority, P: ingress port, H: hint, S: sequence number
 *
 * IPv4 only, with at most one VLAN tag in the frame. */
#include "switch/wred.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The same numbers are in marker.py. */
enum { PORTS = 1024, PRIORITIES = WRED_QUEUES, PRIORITY_OFFSET = 7, PRIORITY_SHIFT = 4 };

enum { ECN_MASK = 3, ECN_NOT_ECT = 0, ECN_CE = 3 };

struct depths {
    __u32 bytes[PRIORITIES];
};

struct marks {
    __u64 packets[PRIORITIES];
};

/* Written by the shim: bytes in each queue of each port. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, PORTS);
    __type(key, __u32);
    __type(value, struct depths);
} depths SEC(".maps");

/* Written once by the lab: interface -> port. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, PORTS);
    __type(key, __u32);
    __type(value, __u32);
} port_of SEC(".maps");

/* Written by the lab, and by the shim while a fault changes a port's curves (fault_wrong_ecn.c). */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, PORTS);
    __type(key, __u32);
    __type(value, struct wred_curves);
} curves SEC(".maps");

/* Written here: marked packets, by priority. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PORTS);
    __type(key, __u32);
    __type(value, struct marks);
} marks SEC(".maps");

/* The offset of the IPv4 header; 0 when the frame has none. */
static __u32 ipv4_offset(struct __sk_buff *skb)
{
    __u32 offset = ETH_HLEN;
    __be16 ethertype;

    if (bpf_skb_load_bytes(skb, offset - sizeof ethertype, &ethertype, sizeof ethertype))
        return 0;
    if (ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD)) {
        offset += 4;
        if (bpf_skb_load_bytes(skb, offset - sizeof ethertype, &ethertype, sizeof ethertype))
            return 0;
    }
    return ethertype == bpf_htons(ETH_P_IP) ? offset : 0;
}

/* Sets CE. The checksum covers TOS as the low byte of a 16-bit word. */
static void set_ce(struct __sk_buff *skb, __u32 ip_offset, __u8 tos)
{
    __u8 marked = tos | ECN_CE;

    bpf_l3_csum_replace(skb, ip_offset + __builtin_offsetof(struct iphdr, check), bpf_htons(tos),
                        bpf_htons(marked), sizeof(__u16));
    bpf_skb_store_bytes(skb, ip_offset + __builtin_offsetof(struct iphdr, tos), &marked,
                        sizeof marked, 0);
}

static __u32 draw(struct __sk_buff *skb, __u32 ip_offset, const struct wred *wred)
{
    __u32 words[WRED_DRAW_WORDS];

    if (bpf_skb_load_bytes(skb, ip_offset + WRED_DRAW_OFFSET, words, sizeof words))
        __builtin_memset(words, 0, sizeof words);
    return wred_draw(wred, words);
}

SEC("tc")
int mark(struct __sk_buff *skb)
{
    __u32 ifindex = skb->ifindex;
    __u8 tag;
    struct iphdr ip;
    __u32 offset = ipv4_offset(skb);

    if (!offset || bpf_skb_load_bytes(skb, offset, &ip, sizeof ip) ||
        bpf_skb_load_bytes(skb, PRIORITY_OFFSET, &tag, sizeof tag))
        return TC_ACT_OK;
    if ((ip.tos & ECN_MASK) == ECN_NOT_ECT || (ip.tos & ECN_MASK) == ECN_CE)
        return TC_ACT_OK;

    const __u32 *port = bpf_map_lookup_elem(&port_of, &ifindex);
    if (!port)
        return TC_ACT_OK;
    const struct depths *depth = bpf_map_lookup_elem(&depths, port);
    const struct wred_curves *curve = bpf_map_lookup_elem(&curves, port);
    struct marks *count = bpf_map_lookup_elem(&marks, port);
    if (!depth || !curve || !count)
        return TC_ACT_OK;

    __u32 priority = tag >> PRIORITY_SHIFT & (PRIORITIES - 1);
    __u32 queue = curve->queue_of[priority] & (PRIORITIES - 1);
    const struct wred *wred = &curve->wred[queue];
    if (wred_marks(wred, depth->bytes[queue], draw(skb, offset, wred))) {
        set_ce(skb, offset, ip.tos);
        __sync_fetch_and_add(&count->packets[priority], 1);
    }
    return TC_ACT_OK;
}

char mark_license[] SEC("license") = "GPL";
