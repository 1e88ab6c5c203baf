/* The bare loops of the benchmark: the baseline of relays, and the sender of hops. The
 * caller makes and binds the AF_PACKET sockets. native.py compiles this file. */
#define _GNU_SOURCE /* recvmmsg, sendmmsg */

#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, FRAME_BYTES = 4352, NS_PER_S = 1000000000 };
enum { NAP_NS = 50000, GIVE_UP_NS = 200000000 };

static uint8_t buffers[BATCH][FRAME_BYTES];
static struct iovec vectors[BATCH];
static struct mmsghdr messages[BATCH];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Makes every message of a batch the same frame. */
static void prepare_copies(void *frame, size_t length)
{
    for (int i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){frame, length};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
    }
}

/* Sends a batch, in several calls if needed. */
static void send_all(int socket, unsigned int count)
{
    for (unsigned int done = 0; done < count;) {
        int sent = sendmmsg(socket, messages + done, count - done, 0);
        done += sent > 0 ? (unsigned int)sent : 1;
    }
}

/* Sends `count` copies of a frame. */
void fill(int source, void *frame, size_t length, uint32_t count)
{
    prepare_copies(frame, length);
    for (uint32_t done = 0; done < count; done += BATCH)
        send_all(source, count - done < BATCH ? count - done : BATCH);
}

/* Sends the frames that wait at one socket through the other, until none is left.
 * Returns the number of frames. */
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

/* The number of frames that the kernel delivered to a socket since the last call, whether
 * it accepted them or not. */
static uint32_t arrivals(int socket)
{
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
    return stats.tp_packets;
}

static void nap(void)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* The number of frames that arrived at the sink since the last call. Waits for the first
 * of them; 0 if none arrives within GIVE_UP_NS. */
static uint32_t await_arrivals(int sink)
{
    int64_t began = now_ns();
    uint32_t news;
    while (!(news = arrivals(sink)) && now_ns() - began < GIVE_UP_NS)
        nap();
    return news;
}

/* Sends copies of a frame, with `window` in flight at a time, until `count` have arrived
 * at the sink. Frames that do not arrive within GIVE_UP_NS count as lost, and others are
 * sent instead. Returns the nanoseconds that it took. */
int64_t flood(int source, int sink, void *frame, size_t length, uint32_t count, uint32_t window,
              uint32_t *lost)
{
    prepare_copies(frame, length);
    arrivals(sink);
    *lost = 0;
    int64_t start = now_ns();
    for (uint32_t arrived = 0, on_the_way = 0; arrived < count;) {
        send_all(source, window - on_the_way);
        uint32_t news = await_arrivals(sink);
        if (!news)
            *lost += window;
        arrived += news;
        on_the_way = news && news < window ? window - news : 0;
    }
    return now_ns() - start;
}
