/* Flips a bit in the payload of every large frame, where no header and no checksum is. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

enum { LARGE = 1000, AT = 600 };

SEC("tc") int change(struct __sk_buff *frame)
{
    __u8 byte;
    if (frame->len < LARGE || bpf_skb_load_bytes(frame, AT, &byte, sizeof byte))
        return TC_ACT_OK;
    byte ^= 1;
    bpf_skb_store_bytes(frame, AT, &byte, sizeof byte, 0);
    return TC_ACT_OK;
}

char gpl[] SEC("license") = "GPL";
