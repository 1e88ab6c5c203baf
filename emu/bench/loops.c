/* The bare loops that the benchmark measures against and with. Sockets are AF_PACKET
 * ones, made and bound by the caller. Compiled by native.py. */
#define _GNU_SOURCE /* recvmmsg, sendmmsg */

#include <linux/if_packet.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, FRAME_BYTES = 4352, NS_PER_S = 1000000000, GIVE_UP_NS = 10000000 };

static uint8_t buffers[BATCH][FRAME_BYTES];
static struct iovec vectors[BATCH];
static struct mmsghdr messages[BATCH];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Sends a batch, however often it takes. */
static void send_all(int socket, unsigned int count)
{
    for (unsigned int done = 0; done < count;) {
        int sent = sendmmsg(socket, messages + done, count - done, 0);
        done += sent > 0 ? (unsigned int)sent : 1;
    }
}

/* Passes on what is waiting at one socket by the other, until there is no more.
 * Returns how many frames that were. */
uint32_t relay(int from, int to)
{
    for (int i = 0; i < BATCH; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
    uint32_t relayed = 0;
    for (;;) {
        for (int i = 0; i < BATCH; i++)
            vectors[i] = (struct iovec){buffers[i], FRAME_BYTES};
        int count = recvmmsg(from, messages, BATCH, MSG_DONTWAIT, NULL);
        if (count <= 0)
            return relayed;
        for (int i = 0; i < count; i++)
            vectors[i].iov_len = messages[i].msg_len;
        send_all(to, (unsigned int)count);
        relayed += (uint32_t)count;
    }
}

/* Frames that the kernel brought to a socket since the last call, accepted or not. */
static uint32_t arrivals(int socket)
{
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
    return stats.tp_packets;
}

/* Sends copies of a frame, `window` on their way at a time, until `count` have arrived
 * at the sink. Those that have not after a while are lost and make room for others.
 * Returns the nanoseconds it took. */
int64_t flood(int source, int sink, void *frame, size_t length, uint32_t count, uint32_t window,
              uint32_t *lost)
{
    for (int i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){frame, length};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
    }
    arrivals(sink);
    *lost = 0;
    uint32_t on_the_way = 0, arrived = 0;
    int64_t start = now_ns(), heard = start;
    while (arrived < count) {
        uint32_t news = arrivals(sink);
        if (!news && on_the_way == window && now_ns() - heard < GIVE_UP_NS) {
            sched_yield();
            continue;
        }
        heard = now_ns();
        arrived += news;
        if (news)
            on_the_way -= news < on_the_way ? news : on_the_way;
        else if (on_the_way == window) {
            *lost += on_the_way;
            on_the_way = 0;
        }
        uint32_t more = window - on_the_way < BATCH ? window - on_the_way : BATCH;
        send_all(source, more);
        on_the_way += more;
    }
    return heard - start;
}
