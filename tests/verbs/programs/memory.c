/* `memory CASE`: what happens to registered memory when the program does something with its address
 * space. A queue pair is connected with another one of the same NIC, which reads and writes the
 * memory by its key. Ends with 0 if all is as it should be. */
#include "one_host.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum {
    PAGE = 4096,
    REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

static struct ibv_mr *reg(void *memory, size_t length)
{
    return ibv_reg_mr(near_end.pd, memory, length, REMOTE);
}

static enum ibv_wc_status peer(enum ibv_wr_opcode opcode, const struct ibv_mr *mr, size_t offset,
                               uint32_t bytes)
{
    far_end.far.addr = (uintptr_t)mr->addr + offset;
    far_end.far.rkey = mr->rkey;
    MUST(end_send(&far_end, opcode, bytes) == 0);
    return next_completion(far_end.cq).status;
}

/* The peer writes these bytes there. */
static void peer_writes(const struct ibv_mr *mr, size_t offset, const char *text)
{
    strcpy(window, text);
    MUST(peer(IBV_WR_RDMA_WRITE, mr, offset, (uint32_t)strlen(text) + 1) == IBV_WC_SUCCESS);
}

/* Whether the peer reads these bytes there. */
static bool peer_reads(const struct ibv_mr *mr, size_t offset, const char *text)
{
    memset(window, 'x', sizeof window);
    MUST(peer(IBV_WR_RDMA_READ, mr, offset, (uint32_t)strlen(text) + 1) == IBV_WC_SUCCESS);
    return strcmp(window, text) == 0;
}

static char *map(size_t bytes, int flags)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    MUST(at != MAP_FAILED);
    return at;
}

static void both_see(char *memory, const struct ibv_mr *mr)
{
    strcpy(memory + 10, "own");
    MUST(peer_reads(mr, 10, "own"));
    peer_writes(mr, 10, "theirs");
    MUST(strcmp(memory + 10, "theirs") == 0);
}

/* ---- kinds of memory --------------------------------------------------------------------------
 */

static char in_data[3 * PAGE] = "initialised";
static char in_bss[3 * PAGE];
static const char in_rodata[PAGE] __attribute__((aligned(PAGE))) = "constant";

static void kinds(void)
{
    char on_stack[3 * PAGE] = "stack";
    char *heap = malloc(100), *neighbour = malloc(100);
    strcpy(neighbour, "neighbour");
    char *places[] = {in_data + 100, in_bss + 100, on_stack + 100, heap};
    for (size_t i = 0; i < 4; i++) {
        struct ibv_mr *mr = reg(places[i], 100);
        MUST(mr);
        both_see(places[i], mr);
        MUST(ibv_dereg_mr(mr) == 0);
        MUST(strcmp(places[i] + 10, "theirs") == 0);
    }
    MUST(strcmp(in_data, "initialised") == 0 && strcmp(on_stack, "stack") == 0);
    MUST(strcmp(neighbour, "neighbour") == 0);
    free(heap);
    free(neighbour);
}

static void read_only(void)
{
    struct ibv_mr *mr = ibv_reg_mr(near_end.pd, (void *)in_rodata, PAGE, IBV_ACCESS_REMOTE_READ);
    MUST(mr && peer_reads(mr, 0, "constant"));
    MUST(ibv_dereg_mr(mr) == 0);
    MUST(!reg((void *)in_rodata, PAGE) && errno == EFAULT);
}

static void refused(void)
{
    char *shared = map(PAGE, MAP_SHARED), *gone = map(3 * PAGE, MAP_PRIVATE);
    MUST(!reg(shared, PAGE) && errno == EOPNOTSUPP);
    MUST(munmap(gone + PAGE, PAGE) == 0);
    MUST(!reg(gone, 3 * PAGE) && errno == EFAULT);
    strcpy(gone, "as before");
    MUST(strcmp(gone, "as before") == 0);
    MUST(!reg(gone, 0) && errno == EINVAL);
}

static void overlaps(void)
{
    char *memory = map(8 * PAGE, MAP_PRIVATE);
    struct ibv_mr *one = reg(memory, 5 * PAGE), *other = reg(memory + 3 * PAGE, 5 * PAGE);
    struct ibv_mr *same = reg(memory, 5 * PAGE);
    MUST(one && other && same);
    both_see(memory + 4 * PAGE, reg(memory + 4 * PAGE, PAGE));
    MUST(ibv_dereg_mr(one) == 0);
    strcpy(memory + 4 * PAGE, "kept");
    MUST(peer_reads(same, 4 * PAGE, "kept") && peer_reads(other, PAGE, "kept"));
    MUST(ibv_dereg_mr(same) == 0);
    peer_writes(other, PAGE, "still");
    MUST(strcmp(memory + 4 * PAGE, "still") == 0);
    MUST(ibv_dereg_mr(other) == 0);
}

static void again(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE);
    struct ibv_mr *mr = reg(memory, 2 * PAGE);
    char *elsewhere = map(4 * PAGE, MAP_PRIVATE);
    MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, 4 * PAGE, 0) == 0);
    both_see(elsewhere + 2 * PAGE,
             &(struct ibv_mr){.addr = elsewhere + 2 * PAGE, .rkey = mr->rkey});
    MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ) == 0);
    MUST(mr->addr == elsewhere && mr->length == 4 * PAGE);
    MUST(peer_reads(mr, 2 * PAGE + 10, "theirs"));
    MUST(peer(IBV_WR_RDMA_WRITE, mr, 0, 8) == IBV_WC_REM_ACCESS_ERR);
}

/* ---- memory that goes away ----------------------------------------------------------------------
 */

static void unmapped(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE);
    strcpy(memory, "old");
    struct ibv_mr *old = reg(memory, 4 * PAGE);
    MUST(old && munmap(memory, 4 * PAGE) == 0);
    MUST(mmap(memory, 4 * PAGE, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == memory);
    MUST(memory[0] == 0);
    strcpy(memory, "new");
    MUST(peer_reads(old, 0, "old"));
    struct ibv_mr *new = reg(memory, 4 * PAGE);
    MUST(new &&peer_reads(new, 0, "new") && peer_reads(old, 0, "old"));
    peer_writes(old, 0, "late");
    MUST(strcmp(memory, "new") == 0);
    MUST(ibv_dereg_mr(old) == 0);
    both_see(memory, new);
    MUST(ibv_dereg_mr(new) == 0 && strcmp(memory, "new") == 0);
}

static void moved(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE), *place = map(8 * PAGE, MAP_PRIVATE);
    struct ibv_mr *mr = reg(memory, 4 * PAGE);
    strcpy(memory + PAGE, "moves");
    MUST(mremap(memory, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    MUST(strcmp(place + PAGE, "moves") == 0 && peer_reads(mr, PAGE, "moves"));
    peer_writes(mr, PAGE, "along");
    MUST(strcmp(place + PAGE, "along") == 0);
    struct ibv_mr *there = reg(place, 4 * PAGE);
    both_see(place + 2 * PAGE, &(struct ibv_mr){.addr = place + 2 * PAGE, .rkey = there->rkey});
    MUST(ibv_dereg_mr(mr) == 0 && strcmp(place + PAGE, "along") == 0);
    MUST(ibv_dereg_mr(there) == 0 && strcmp(place + PAGE, "along") == 0);
}

static void emptied(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE);
    strcpy(memory, "first");
    strcpy(memory + 2 * PAGE, "second");
    struct ibv_mr *mr = reg(memory, 4 * PAGE);
    MUST(madvise(memory, 2 * PAGE, MADV_DONTNEED) == 0);
    MUST(memory[0] == 0 && peer_reads(mr, 0, "") && peer_reads(mr, 2 * PAGE, "second"));
    MUST(ibv_dereg_mr(mr) == 0);
    MUST(madvise(memory, 4 * PAGE, MADV_DONTNEED) == 0 && memory[2 * PAGE] == 0);
}

/* malloc gives memory back to the kernel without any call that a library sees. */
static void freed(void)
{
    for (int round = 0; round < 50; round++) {
        size_t size = 1000 + 40000 * (size_t)(round % 7);
        char *memory = malloc(size);
        memset(memory, 'm', size);
        struct ibv_mr *mr = reg(memory, size);
        MUST(mr && ibv_dereg_mr(mr) == 0);
        memory = realloc(memory, 3 * size);
        for (size_t i = 0; i < size; i++)
            MUST(memory[i] == 'm');
        free(memory);
        char *clean = calloc(1, 4 * size);
        for (size_t i = 0; i < 4 * size; i++)
            MUST(clean[i] == 0);
        free(clean);
    }
}

/* ---- threads and children ----------------------------------------------------------------------
 */

enum { WRITERS = 4, ROUNDS = 200 };

static volatile bool over;
static volatile uint64_t *hammered;

static void *hammer(void *of)
{
    volatile uint64_t *word = hammered + (uintptr_t)of * 700;
    uint64_t count = 0;
    while (!over) {
        MUST(*word == count);
        *word = ++count;
    }
    return (void *)count;
}

static void hammering(void)
{
    pthread_t threads[WRITERS];
    hammered = (uint64_t *)map(8 * PAGE, MAP_PRIVATE);
    for (uintptr_t i = 0; i < WRITERS; i++)
        MUST(pthread_create(&threads[i], NULL, hammer, (void *)i) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_mr *mr = reg((void *)hammered, 8 * PAGE);
        MUST(mr && ibv_dereg_mr(mr) == 0);
    }
    over = true;
    for (int i = 0; i < WRITERS; i++) {
        void *count;
        MUST(pthread_join(threads[i], &count) == 0);
        MUST(hammered[700 * i] == (uintptr_t)count && count);
    }
}

static int ended(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void forked(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE);
    int go[2];
    struct ibv_mr *mr = reg(memory, 4 * PAGE);
    strcpy(memory, "before");
    MUST(mr && pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        bool same = strcmp(memory, "before") == 0;
        strcpy(memory, "child");
        same = same && read(go[0], &byte, 1) == 1 && strcmp(memory, "child") == 0;
        _exit(same ? 0 : 1);
    }
    strcpy(memory, "parent");
    peer_writes(mr, 0, "peer");
    MUST(write(go[1], "", 1) == 1 && ended(child) == 0);
    MUST(strcmp(memory, "peer") == 0);
    both_see(memory, mr);
}

/* The child has a device of its own. */
static void child_registers(void)
{
    char *memory = map(4 * PAGE, MAP_PRIVATE);
    struct ibv_mr *mr = reg(memory, 4 * PAGE);
    strcpy(memory, "parent");
    pid_t child = fork();
    if (child == 0) {
        connect_both();
        struct ibv_mr *own = reg(memory, 4 * PAGE);
        MUST(own && strcmp(memory, "parent") == 0);
        both_see(memory, own);
        exit(0);
    }
    MUST(ended(child) == 0 && strcmp(memory, "parent") == 0);
    both_see(memory, mr);
}

/* ---- size
 * ------------------------------------------------------------------------------------------
 */

static double seconds(void)
{
    struct timespec now;
    MUST(timespec_get(&now, TIME_UTC));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int byte; (byte = fgetc(maps)) != EOF;)
        lines += byte == '\n';
    fclose(maps);
    return lines;
}

static void large(void)
{
    const size_t size = (size_t)1 << 30;
    for (int touched = 0; touched < 2; touched++) {
        char *memory = map(size, MAP_PRIVATE);
        if (touched)
            memset(memory, 't', size);
        double from = seconds();
        struct ibv_mr *mr = reg(memory, size);
        double registered = seconds();
        MUST(mr);
        both_see(memory + size - PAGE,
                 &(struct ibv_mr){.addr = memory + size - PAGE, .rkey = mr->rkey});
        double begun = seconds();
        MUST(ibv_dereg_mr(mr) == 0);
        printf("%s: registered in %.2f s, deregistered in %.2f s\n",
               touched ? "touched" : "untouched", registered - from, seconds() - begun);
        MUST(memory[size - 1] == (touched ? 't' : 0));
        MUST(munmap(memory, size) == 0);
    }
}

static void rounds(int count)
{
    char *memory = malloc(50 * PAGE);
    memset(memory, 'r', 50 * PAGE);
    long before = 0;
    for (int round = 0; round < count; round++) {
        struct ibv_mr *mr = reg(memory + 100 * (round % 100), 40 * PAGE);
        MUST(mr && ibv_dereg_mr(mr) == 0);
        if (round == 300)
            before = mappings();
    }
    MUST(mappings() <= before + 8); /* neighbours are not always merged */
    for (int i = 0; i < 50 * PAGE; i++)
        MUST(memory[i] == 'r');
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"kinds", kinds},         {"read_only", read_only}, {"refused", refused},
        {"overlaps", overlaps},   {"again", again},         {"unmapped", unmapped},
        {"moved", moved},         {"emptied", emptied},     {"freed", freed},
        {"hammering", hammering}, {"forked", forked},       {"child_registers", child_registers},
        {"large", large},
    };
    MUST(argc > 1);
    connect_both();
    if (strcmp(argv[1], "rounds") == 0) {
        rounds(atoi(argv[2]));
        return 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    return 2;
}
