/* The NICs' side of the verbs of programs: takes work requests out of shared memory, puts
 * completions there, and lets programs wait for emulated time (rings.h).
 *
 *     server ─┬─ client (a process of a host) ─┬─ queues of sends and receives
 *             └─ client ...                    └─ completion queues
 *
 * Objects are made and destroyed on request (messages.h), which Python handles. Plain declarations
 * only, as in nic_api.h. Everything here is called between two runs of the clock. */
#ifndef EMU_UVERBS_SERVER_H
#define EMU_UVERBS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/verbs_api.h"

struct uverbs_server;
struct uverbs_client;
struct uverbs_send_queue;
struct uverbs_receive_queue;
struct uverbs_completions;

/* The size of the memory that programs read the time from. */
size_t uverbs_time_bytes(void);
/* `time_fd`: that memory. `bell_fd`: the end of a pipe, non-blocking, by which programs wake the
 * NICs. `event` becomes true when programs must go on, as that of their completion queues. The
 * caller keeps the descriptors open. NULL: no memory. */
struct uverbs_server *uverbs_server_new(int time_fd, int bell_fd, bool *event);
void uverbs_server_free(struct uverbs_server *server);

/* ---- objects: NULL when memory is short, or a file does not have the right size and seals ---- */

/* A process with this pid, by its struct uverbs_session. `events_fd`: where asynchronous events are
 * written, a pipe whose writing end nobody else has; the caller closes it after the client. */
struct uverbs_client *uverbs_client_new(struct uverbs_server *server, struct nic *nic,
                                        int session_fd, uint32_t pid, int events_fd,
                                        uint8_t default_sl);
/* Its process has gone: nothing waits for its threads any more, in whatever they were killed, and
 * they get nothing. */
void uverbs_client_end(struct uverbs_client *client);
/* After its queues and completion queues. */
void uverbs_client_free(struct uverbs_client *client);

/* `length` bytes of a program from `addr` on, which are at the same place in its file. NULL: they
 * cannot be mapped. */
uint8_t *uverbs_map(int memory_fd, uint64_t addr, uint64_t length);
void uverbs_unmap(uint8_t *bytes, uint64_t length);
/* Whole pages of it become a copy that the program no longer sees. False: memory is short. */
bool uverbs_detach(uint8_t *bytes, uint64_t length);

/* What a completion queue gets goes to shared memory. `handle`: in events. `channel_fd`: where
 * events of completions are written; -1: nowhere. */
struct uverbs_completions *uverbs_completions_new(struct uverbs_client *client, struct cq *cq,
                                                  uint32_t handle, int memory_fd, uint32_t entries,
                                                  int channel_fd);
/* Moves it to other shared memory, with the completions that the program has not taken. Returns 0,
 * EINVAL: not the right size or seals, or too small for them; ENOMEM. */
int uverbs_completions_resize(struct uverbs_completions *completions, int memory_fd,
                              uint32_t entries);
void uverbs_completions_free(struct uverbs_completions *completions);

/* The queue of sends of the queue pair that has this handle. */
struct uverbs_send_queue *uverbs_sends_new(struct uverbs_client *client, uint32_t handle,
                                           int memory_fd, uint32_t slots, uint32_t inline_bytes,
                                           struct verbs_qp *qp, bool is_datagram);
void uverbs_sends_free(struct uverbs_send_queue *sends);
/* The queue of receives of the queue pair or, if that is NULL, of the shared receive queue that has
 * this handle. */
struct uverbs_receive_queue *uverbs_receives_new(struct uverbs_client *client, uint32_t handle,
                                                 int memory_fd, uint32_t slots, struct verbs_qp *qp,
                                                 struct verbs_srq *srq);
/* Its queue pair was reset, and has forgotten all receives. */
void uverbs_receives_reset(struct uverbs_receive_queue *receives);
void uverbs_receives_free(struct uverbs_receive_queue *receives);

/* ---- work ------------------------------------------------------------------------------- */

/* Posts what programs have put into their queues, unless they compute until later; program after
 * program, in the order in which they have connected. */
void uverbs_take_requests(struct uverbs_server *server, int64_t now_ps);
/* The same for one, at once. */
void uverbs_take_requests_of(struct uverbs_client *client, int64_t now_ps);

/* Gives programs the completions that they may see now. Their threads that wait go on. */
void uverbs_give_completions(struct uverbs_server *server);

/* Something for the client is in one of its pipes, or comes there before its threads go on: those
 * that wait look at it. */
void uverbs_have_news(struct uverbs_client *client);

/* An asynchronous event of a client's object (enum uverbs_event_kind). */
void uverbs_send_event(struct uverbs_client *client, uint32_t kind, uint32_t handle);

/* ---- emulated time ------------------------------------------------------------------------ */

/* Emulated time passes up to the next uverbs_set_time. Programs that read it meanwhile wait: a
 * thread that only seemed to wait (uverbs_seems_to_wait) sees its memory change before that. */
void uverbs_let_time_pass(struct uverbs_server *server);
/* The NICs are about to sleep, because nothing will happen. False: there is new work. While they
 * rest, programs wake them when there is, or when a wait begins or changes. */
bool uverbs_rest(struct uverbs_server *server);
void uverbs_end_rest(struct uverbs_server *server);
/* Programs see this time from now on; threads whose wait ends then go on. */
void uverbs_set_time(struct uverbs_server *server, int64_t now_ps);

/* Waits until all threads of all clients wait: in the library, or in the kernel. False: `poll_fd`
 * has become readable before. If all wait already, that is not noticed at once. */
bool uverbs_settle(struct uverbs_server *server, int poll_fd);
/* Whether a thread only seems to wait: it computes without a call of the library. It may go on at
 * any time. */
bool uverbs_seems_to_wait(const struct uverbs_server *server);

/* Emulated time that passes for each time that programs compute; 0: none. */
void uverbs_set_cpu_factor(struct uverbs_server *server, double factor);
/* After uverbs_settle: what programs have computed by now takes emulated time. */
void uverbs_charge(struct uverbs_server *server, int64_t now_ps);

/* The earliest end of a wait in the library, or of computing, in picoseconds; INT64_MAX: there is
 * none. */
int64_t uverbs_earliest_end(const struct uverbs_server *server, int64_t now_ps);

#endif
