#include "programs.h"

#include <assert.h>

static void open_program(struct program *program, struct bench *bench, int side,
                         const struct qp_config *config, bool shares)
{
    struct qp_config own = *config;
    *program = (struct program){.bench = bench, .side = side};
    program->cq = cq_new(&bench->clock, 2 * WORK_REQUESTS, &program->event);
    if (shares) {
        program->srq = verbs_srq_new(&bench->nic[side], 0, WORK_REQUESTS);
        own.srq = verbs_srq_queue(program->srq);
    }
    program->qp = nic_add_qp(&bench->nic[side], &own);
    assert(program->cq && program->qp);
    program->verbs = verbs_qp_new(program->qp, program->cq, program->cq, WORK_REQUESTS,
                                  shares ? 0 : WORK_REQUESTS, MAX_INLINE);
    assert(program->verbs);
}

static void connect(struct program *program, const struct program *other)
{
    const struct nic *far = &other->bench->nic[other->side];
    struct qp_remote remote = {.qpn = qp_number(other->qp),
                               .psn = other->qp->config.psn,
                               .address = far->config.address,
                               .guid = far->config.guid};
    qp_connect(program->qp, &remote);
}

static void connect_both(struct program programs[2], struct bench *bench,
                         const struct qp_config *config, bool shares)
{
    for (int side = 0; side < 2; side++)
        open_program(&programs[side], bench, side, config, shares && side == 1);
    connect(&programs[0], &programs[1]);
    connect(&programs[1], &programs[0]);
}

void programs_connect(struct program programs[2], struct bench *bench,
                      const struct qp_config *config)
{
    connect_both(programs, bench, config, false);
}

void programs_connect_srq(struct program programs[2], struct bench *bench,
                          const struct qp_config *config)
{
    connect_both(programs, bench, config, true);
}

void program_end(struct program *program)
{
    struct bench *bench = program->bench;
    nic_remove_qp(&bench->nic[program->side], program->qp, bench->clock.now);
    verbs_qp_free(program->verbs);
    if (program->srq)
        verbs_srq_free(program->srq);
    cq_free(program->cq);
}

struct sge source_sge(const struct program *program, uint32_t from, uint32_t length)
{
    return (struct sge){.addr = FIRST_VA + from,
                        .length = length,
                        .lkey = program->bench->source_key[program->side]};
}

struct sge sink_sge(const struct program *program, uint32_t to, uint32_t length)
{
    return (struct sge){
        .addr = FIRST_VA + to, .length = length, .lkey = program->bench->sink_key[program->side]};
}

struct send_request request_of(const struct program *program, enum verb verb, uint64_t wr_id,
                               const struct sge *sges, uint32_t count, uint32_t to)
{
    const struct bench *bench = program->bench;
    int far = !program->side;
    return (struct send_request){.wr_id = wr_id,
                                 .verb = (int)verb,
                                 .sges = sges,
                                 .sge_count = count,
                                 .remote_addr = FIRST_VA + to,
                                 .rkey = verb == VERB_READ ? bench->source_key[far]
                                                           : bench->sink_key[far]};
}

bool program_submit(struct program *program, const struct send_request *request)
{
    return verbs_submit_send(program->verbs, request, program->bench->clock.now);
}

struct work_completion program_poll(struct program *program)
{
    struct work_completion completion;
    EXPECT(cq_poll(program->cq, &completion));
    return completion;
}

bool program_has_nothing(struct program *program)
{
    struct work_completion completion;
    return !cq_poll(program->cq, &completion);
}
