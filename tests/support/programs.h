/* Programs at the two NICs of a testbench, each with completion queue and queue pairs. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "nic/verbs_api.h"
#include "testbench.h"

enum { WORK_REQUESTS = 64, MAX_INLINE = 64 };

/* One end of a connection. */
struct program {
    struct bench *bench;
    int side; /* the NIC */
    bool event;
    struct cq *cq;
    struct verbs_srq *srq; /* NULL: none */
    struct qp *qp;
    struct verbs_qp *verbs;
};

/* Connects a program at NIC 0 with one at NIC 1. `config`: for both. */
void programs_connect(struct program programs[2], struct bench *bench,
                      const struct qp_config *config);
/* The same; the one at NIC 1 has a shared receive queue. */
void programs_connect_srq(struct program programs[2], struct bench *bench,
                          const struct qp_config *config);

/* The program ends: removes its queue pair, and frees its queues. */
void program_end(struct program *program);

/* An element of the NIC's source or sink, at an offset. */
struct sge source_sge(const struct program *program, uint32_t from, uint32_t length);
struct sge sink_sge(const struct program *program, uint32_t to, uint32_t length);

/* A request for that list: remote memory is the other sink from `to` on, or for a READ its source.
 */
struct send_request request_of(const struct program *program, enum verb verb, uint64_t wr_id,
                               const struct sge *sges, uint32_t count, uint32_t to);

bool program_submit(struct program *program, const struct send_request *request);

/* The next completion, which there must be. */
struct work_completion program_poll(struct program *program);
bool program_has_nothing(struct program *program);

/* The next completion is that of this request, with this status. */
#define EXPECT_COMPLETION(program, id, result)                                                     \
    do {                                                                                           \
        struct work_completion seen_ = program_poll(program);                                      \
        EXPECT_EQUAL(id, seen_.wr_id);                                                             \
        EXPECT_EQUAL(result, seen_.status);                                                        \
    } while (0)

#endif
