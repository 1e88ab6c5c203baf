/* The verbs objects of this process: by handle, as the NICs know them, queue pairs also by number,
 * regions by key.
 *
 *     made ── remember ──▶ table ── end_object ──▶ destroyed by the program
 *                            ├──── end_objects ──▶ left behind in a context that is closed
 *                            └── forget_objects ─▶ those of the parent, in a child
 *
 * A child has its own connection, whose handles begin anew. So an object that is not in the table
 * is the parent's, and no call about it reaches the NICs. */
#include <errno.h>
#include <string.h>

#include "library.h"

static struct {
    void *object;
    const struct ibv_context *context;
    end_function *end;
} by_handle[UVERBS_HANDLES];
static struct emu_qp *by_number[1 << 16];
static struct emu_mr *by_key[1 << 16];

void *object_of(uint32_t handle)
{
    return by_handle[handle % UVERBS_HANDLES].object;
}

void remember(uint32_t handle, void *object, const struct ibv_context *context, end_function *end)
{
    uint32_t place = handle % UVERBS_HANDLES;
    by_handle[place].context = context;
    by_handle[place].end = end;
    by_handle[place].object = object;
}

struct emu_qp *qp_of(uint32_t qp_num)
{
    return by_number[qp_num & 0xffff];
}

void remember_qp(uint32_t qp_num, struct emu_qp *qp)
{
    by_number[qp_num & 0xffff] = qp;
}

static struct emu_mr **place_of_key(uint32_t lkey)
{
    return &by_key[(lkey ^ lkey >> 16) & 0xffff];
}

void remember_mr(struct emu_mr *mr)
{
    *place_of_key(mr->mr.lkey) = mr;
}

void forget_mr(const struct emu_mr *mr)
{
    struct emu_mr **place = place_of_key(mr->mr.lkey);
    if (*place == mr)
        *place = NULL;
}

const struct emu_mr *mr_of(uint32_t lkey)
{
    const struct emu_mr *mr = *place_of_key(lkey);
    return mr && mr->mr.lkey == lkey ? mr : NULL;
}

bool is_own_object(uint32_t handle, const void *object)
{
    if (object_of(handle) == object)
        return true;
    debug("this object is the parent's; a child opens the device and makes its own");
    return false;
}

int ask_for_object(const void *object, const struct uverbs_request *request,
                   struct uverbs_reply *reply)
{
    return is_own_object(request->handle, object) ? ask(request, NULL, 0, reply) : EINVAL;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

int end_object(uint32_t handle, const void *object)
{
    struct uverbs_request request = {.command = UVERBS_DESTROY, .handle = handle};
    struct uverbs_reply reply;
    int error = ask_for_object(object, &request, &reply);
    if (!error)
        by_handle[handle % UVERBS_HANDLES].object = NULL;
    return error;
}

/* Returns whether there was one that nothing else uses any more. */
static bool end_some(const struct ibv_context *context)
{
    bool any = false;
    for (uint32_t i = 0; i < UVERBS_HANDLES; i++)
        if (by_handle[i].object && by_handle[i].context == context)
            any |= by_handle[i].end(by_handle[i].object, false) == 0;
    return any;
}

void end_objects(const struct ibv_context *context)
{
    while (end_some(context))
        ;
}

void forget_objects(void)
{
    memset(by_handle, 0, sizeof by_handle);
    memset(by_number, 0, sizeof by_number);
    memset(by_key, 0, sizeof by_key);
}
