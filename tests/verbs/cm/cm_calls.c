/* A program that calls functions of librdmacm on a host and prints what each returns, one line for
 * each: `name: result errno`. The other end is a listener of its own, on the same host or none. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

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
    rdma_destroy_event_channel(channel);
    return 0;
}
