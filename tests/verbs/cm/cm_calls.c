/* A program that calls functions of librdmacm on a host and prints what each returns, one line for
 * each: `name: result errno`. The other end is a listener of its own, on the same host or none. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REQUESTS = 3 };

static volatile bool is_acknowledged;

static void show(const char *name, int result)
{
    printf("%s: %d %s\n", name, result, result ? strerror(errno) : "-");
    errno = 0;
}

static struct sockaddr_in address(const char *ip, uint16_t port)
{
    struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &made.sin_addr);
    return made;
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
    struct rdma_cm_id *id = NULL;
    if (rdma_create_id(channel, &id, NULL, ps) != 0)
        return NULL;
    return id;
}

static int bind_to(struct rdma_cm_id *id, const char *ip, uint16_t port)
{
    struct sockaddr_in to = address(ip, port);
    return rdma_bind_addr(id, (struct sockaddr *)&to);
}

static void binding(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *one = new_id(channel, RDMA_PS_TCP), *other = new_id(channel, RDMA_PS_TCP);
    show("bind", bind_to(one, "0.0.0.0", 5000));
    printf("port: %u, device: %s\n", ntohs(rdma_get_src_port(one)), one->verbs ? "yes" : "no");
    show("bind to the same port", bind_to(other, "0.0.0.0", 5000));
    show("bind to another's address", bind_to(other, "10.0.0.2", 5001));
    show("bind to any port", bind_to(other, "10.0.0.1", 0));
    printf("has a port: %s, device: %s\n", rdma_get_src_port(other) ? "yes" : "no",
           other->verbs ? "yes" : "no");
    show("listen", rdma_listen(one, 1));
    show("listen again", rdma_listen(one, 1));
    show("destroy", rdma_destroy_id(one));
    show("destroy", rdma_destroy_id(other));
}

static void out_of_order(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct rdma_conn_param deep = {.initiator_depth = 200};
    uint8_t large[57] = {0};
    struct rdma_conn_param wordy = {.private_data = large, .private_data_len = sizeof large};
    int mask;
    show("route before address", rdma_resolve_route(id, 1000));
    show("connect before address", rdma_connect(id, NULL));
    show("accept without request", rdma_accept(id, NULL));
    show("reject without request", rdma_reject(id, NULL, 0));
    show("disconnect without connection", rdma_disconnect(id));
    show("attributes without connection", rdma_init_qp_attr(id, &attr, &mask));
    show("too deep", rdma_connect(id, &deep));
    show("too much private data", rdma_connect(id, &wordy));
    show("multicast", rdma_join_multicast(id, NULL, NULL));
    show("request without listener", rdma_get_request(id, &id));
    rdma_destroy_id(id);
}

static void waiting(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
    struct sockaddr_in to = address("10.0.0.2", 9);
    struct pollfd polled = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    show("no event", rdma_get_cm_event(channel, &event));
    show("poll before", poll(&polled, 1, 0));
    show("resolve", rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
    printf("poll after: %d\n", poll(&polled, 1, -1));
    show("event", rdma_get_cm_event(channel, &event));
    printf("kind: %s\n", rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    show("no other event", rdma_get_cm_event(channel, &event));
    rdma_destroy_id(id);
}

/* An event of an identifier that is destroyed has gone: nobody may wait for it. */
static void destroyed(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
    struct sockaddr_in to = address("10.0.0.2", 9);
    struct pollfd polled = {.fd = channel->fd, .events = POLLIN};
    show("resolve", rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
    printf("poll after: %d\n", poll(&polled, 1, -1));
    show("destroy", rdma_destroy_id(id));
    show("poll after that", poll(&polled, 1, 0));
}

static void *acknowledge(void *event)
{
    usleep(1000);
    is_acknowledged = true;
    rdma_ack_cm_event(event);
    return NULL;
}

/* rdma_ack_cm_event(3): until then rdma_destroy_id waits. */
static void acknowledged(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
    struct sockaddr_in to = address("10.0.0.2", 9);
    struct rdma_cm_event *event;
    pthread_t thread;
    show("resolve", rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
    while (rdma_get_cm_event(channel, &event) != 0)
        continue;
    pthread_create(&thread, NULL, acknowledge, event);
    show("destroy", rdma_destroy_id(id));
    printf("acknowledged: %s\n", is_acknowledged ? "yes" : "no");
    pthread_join(thread, NULL);
}

/* More requests than a listener takes. */
static void backlog(struct rdma_event_channel *channel)
{
    struct rdma_event_channel *other = rdma_create_event_channel();
    struct rdma_cm_id *listener = new_id(channel, RDMA_PS_TCP), *ids[REQUESTS];
    struct sockaddr_in to = address("10.0.0.1", 6000);
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct rdma_conn_param param = {0};
    struct rdma_cm_event *event;
    show("bind", bind_to(listener, "0.0.0.0", 6000));
    show("listen", rdma_listen(listener, REQUESTS - 1));
    for (int i = 0; i < REQUESTS; i++) {
        ids[i] = new_id(NULL, RDMA_PS_TCP);
        rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&to, 1000);
        rdma_resolve_route(ids[i], 1000);
        rdma_create_qp(ids[i], NULL, &attr);
        rdma_migrate_id(ids[i], other);
        show("connect", rdma_connect(ids[i], &param));
    }
    show("event", rdma_get_cm_event(other, &event));
    printf("kind: %s, status: %d, last: %s\n", rdma_event_str(event->event), event->status,
           event->id == ids[REQUESTS - 1] ? "yes" : "no");
    rdma_ack_cm_event(event);
    for (int i = 0; i < REQUESTS; i++) {
        rdma_destroy_qp(ids[i]);
        rdma_destroy_id(ids[i]);
    }
    show("destroy", rdma_destroy_id(listener));
    rdma_destroy_event_channel(other);
}

static void names(void)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP}, *found;
    show("passive", rdma_getaddrinfo(NULL, "7", &hints, &found));
    printf("type: %d, source: %s\n", found->ai_qp_type, found->ai_src_addr ? "yes" : "no");
    rdma_freeaddrinfo(found);
    show("by name", rdma_getaddrinfo("h2-eth0", "7", NULL, &found));
    const struct sockaddr_in *to = (const struct sockaddr_in *)found->ai_dst_addr;
    printf("address: %s, space: %#x\n", inet_ntoa(to->sin_addr), found->ai_port_space);
    rdma_freeaddrinfo(found);
}

int main(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    if (!channel) {
        perror("rdma_create_event_channel");
        return 1;
    }
    show("a port space of IPoIB", rdma_create_id(channel, &id, NULL, RDMA_PS_IPOIB));
    binding(channel);
    out_of_order(channel);
    names();
    waiting(channel);
    destroyed(channel);
    acknowledged(channel);
    backlog(channel);
    rdma_destroy_event_channel(channel);
    return 0;
}
