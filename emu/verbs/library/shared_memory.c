/* Registered memory is the program's own: its pages become pages of a file that the NICs have
 * mapped, too.
 *
 *     the file        the page of address A is at offset A
 *     registering     its contents are written there, then the file is mapped over the pages
 *     deregistering   pages of no other region become the program's alone again: private memory
 *                     with their contents is put in their place, and the file forgets them
 *
 * Memory that was never touched stays empty on both sides. Bytes beside a region in its first and
 * last page are shared with it, which nobody notices.
 *
 * What a program does to its address space:
 *
 *     fork              the child gets copies; the parent waits until they are made
 *     munmap, and new   the region keeps a copy of the old pages, as a NIC keeps pages that it has
 *       memory there    pinned, as soon as the new memory is registered
 *     mremap            the pages move with their contents, and the region with them
 *     MADV_DONTNEED     the pages are empty for the NIC, too
 *
 * Left out: a system call that writes into pages at the moment when they become shared fails with
 * EFAULT; a thread cannot wait for pages that hold its own stack, unless it is the one that
 * registers them; fork while the stack of the caller is registered; registered memory that grows by
 * mremap into addresses of other registered memory. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, mremap, SEEK_DATA */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

enum { PAGE = 4096, MAPS_BYTES = 1 << 18, ENTRIES = 512, OWN_STACK = 1 << 18 };

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
/* `ranges` changes under both locks. A thread that has `listing` calls nothing else. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct shared_range *ranges;

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address; // NOLINT: an address of the program
}

/* ---- the program's mappings ------------------------------------------------------------------ */

/* A line of /proc/self/maps. */
struct mapping {
    uint64_t from, to, offset, inode;
    int protection;
    bool is_shared, is_huge;
};

struct maps {
    char *text, *next;
    uint64_t bytes; /* of its memory */
};

/* In memory of its own: what malloc has may be about to become shared. */
static int read_maps(struct maps *maps)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    uint64_t used = 0;
    ssize_t got = 1;
    *maps = (struct maps){.bytes = MAPS_BYTES};
    maps->text =
        mmap(NULL, maps->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (maps->text != MAP_FAILED && got > 0) {
        if (used + PAGE >= maps->bytes) {
            maps->text = mremap(maps->text, maps->bytes, 2 * maps->bytes, MREMAP_MAYMOVE);
            maps->bytes *= 2;
            continue;
        }
        got = read(fd, maps->text + used, maps->bytes - used - 1);
        used += got > 0 ? (uint64_t)got : 0;
    }
    close(fd);
    maps->next = maps->text;
    return maps->text == MAP_FAILED ? ENOMEM : 0;
}

static void free_maps(struct maps *maps)
{
    munmap(maps->text, maps->bytes);
}

static bool next_mapping(struct maps *maps, struct mapping *mapping)
{
    char rights[5] = "";
    int path = 0;
    if (sscanf(maps->next, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
               &mapping->from, &mapping->to, rights, &mapping->offset, &mapping->inode, &path) != 5)
        return false;
    mapping->protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                          (rights[2] == 'x' ? PROT_EXEC : 0);
    mapping->is_shared = rights[3] == 's';
    mapping->is_huge = strncmp(maps->next + path, "/anon_hugepage", 14) == 0;
    char *end = strchr(maps->next, '\n');
    maps->next = end ? end + 1 : maps->next + strlen(maps->next);
    return true;
}

static uint64_t inode_of(int fd)
{
    struct stat file = {0};
    fstat(fd, &file);
    return file.st_ino;
}

/* ---- from private to shared ------------------------------------------------------------------ */

static int write_all(int fd, uint64_t from, uint64_t to)
{
    while (from < to) {
        ssize_t written = pwrite(fd, at(from), to - from, (off_t)from);
        if (written < 0 && errno != EINTR)
            return errno;
        from += written > 0 ? (uint64_t)written : 0;
    }
    return 0;
}

/* Anonymous pages that were never touched have no place in memory and none on disk. */
static int write_touched(int fd, int pagemap, uint64_t from, uint64_t to)
{
    const uint64_t is_somewhere = UINT64_C(3) << 62;
    uint64_t entries[ENTRIES];
    for (uint64_t page = from; page < to; page += ENTRIES * PAGE) {
        uint64_t count = smaller(ENTRIES, (to - page) / PAGE);
        ssize_t bytes = (ssize_t)(count * sizeof *entries);
        if (pread(pagemap, entries, (size_t)bytes, (off_t)(page / PAGE * sizeof *entries)) != bytes)
            return EFAULT;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t first = i;
            while (i < count && entries[i] & is_somewhere)
                i++;
            int error = write_all(fd, page + first * PAGE, page + i * PAGE);
            if (error)
                return error;
        }
    }
    return 0;
}

static int write_contents(int fd, const struct mapping *mapping, uint64_t from, uint64_t to)
{
    int pagemap = -1;
    if (mapping->inode == 0)
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int error = pagemap < 0 ? write_all(fd, from, to) : write_touched(fd, pagemap, from, to);
    if (pagemap >= 0)
        close(pagemap);
    return error;
}

static void forget_contents(int fd, uint64_t from, uint64_t to)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

static int share(int fd, const struct mapping *mapping, uint64_t from, uint64_t to)
{
    int protection = mapping->protection;
    forget_contents(fd, from, to);
    /* Nobody writes between the copy and the new mapping: a thread that tries waits (traps.c). */
    hold_writers(from, to);
    int error = mprotect(at(from), to - from, protection & ~PROT_WRITE) == 0 ? 0 : errno;
    if (!error)
        error = write_contents(fd, mapping, from, to);
    if (!error &&
        mmap(at(from), to - from, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)from) != at(from))
        error = errno;
    if (error)
        mprotect(at(from), to - from, protection);
    release_writers();
    return error;
}

/* ---- from shared to private ------------------------------------------------------------------ */

static bool read_all(int fd, uint8_t *to, uint64_t offset, uint64_t end)
{
    while (offset < end) {
        ssize_t got = pread(fd, to, end - offset, (off_t)offset);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        offset += got > 0 ? (uint64_t)got : 0;
        to += got > 0 ? got : 0;
    }
    return true;
}

/* What the file has between `offset` and `end`; the rest of `to` is empty already. */
static bool read_contents(int fd, uint8_t *to, uint64_t offset, uint64_t end)
{
    for (uint64_t from = offset; from < end;) {
        off_t data = lseek(fd, (off_t)from, SEEK_DATA);
        if (data < 0 || (uint64_t)data >= end)
            return data >= 0 || errno == ENXIO;
        off_t hole = lseek(fd, data, SEEK_HOLE);
        uint64_t until = hole < 0 ? end : smaller((uint64_t)hole, end);
        if (!read_all(fd, to + ((uint64_t)data - offset), (uint64_t)data, until))
            return false;
        from = until;
    }
    return true;
}

/* Private memory with the same contents takes the place of the `bytes` at `address`, which are at
 * `offset` of the file. */
static bool make_private(int fd, uint64_t address, uint64_t offset, uint64_t bytes, int protection)
{
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return false;
    hold_writers(address, address + bytes);
    bool done =
        mprotect(at(address), bytes, protection & ~PROT_WRITE) == 0 &&
        read_contents(fd, copy, offset, offset + bytes) && mprotect(copy, bytes, protection) == 0 &&
        mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(address)) == at(address);
    if (!done) {
        mprotect(at(address), bytes, protection);
        munmap(copy, bytes);
    }
    release_writers();
    return done;
}

/* Wherever the program has the part [from, to) of the file. */
static bool make_all_private(int fd, uint64_t from, uint64_t to)
{
    struct maps maps;
    struct mapping mapping;
    bool done = true;
    if (read_maps(&maps) != 0)
        return false;
    uint64_t inode = inode_of(fd);
    while (next_mapping(&maps, &mapping)) {
        if (!mapping.is_shared || mapping.inode != inode)
            continue;
        uint64_t first = larger(from, mapping.offset);
        uint64_t end = smaller(to, mapping.offset + (mapping.to - mapping.from));
        if (first < end && !make_private(fd, mapping.from + (first - mapping.offset), first,
                                         end - first, mapping.protection))
            done = false;
    }
    free_maps(&maps);
    return done;
}

/* The first part of [from, to) that no range has; empty: they have all. */
static void find_gap(uint64_t *from, uint64_t *to)
{
    const struct shared_range *range = ranges;
    while (range)
        if (range->from <= *from && *from < range->to) {
            *from = range->to;
            range = ranges;
        } else {
            range = range->next;
        }
    for (range = ranges; range; range = range->next)
        if (range->from > *from && range->from < *to)
            *to = range->from;
}

static void give_back(int fd, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint64_t end = to;
        find_gap(&from, &end);
        if (from >= end)
            return;
        if (make_all_private(fd, from, end))
            forget_contents(fd, from, end);
        from = end;
    }
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void add(struct shared_range *range)
{
    pthread_mutex_lock(&listing);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&listing);
}

static void drop(const struct shared_range *range)
{
    pthread_mutex_lock(&listing);
    struct shared_range **of = &ranges;
    while (*of && *of != range)
        of = &(*of)->next;
    if (*of)
        *of = range->next;
    pthread_mutex_unlock(&listing);
}

static bool is_own(const struct mapping *mapping, uint64_t inode)
{
    return mapping->is_shared && mapping->inode == inode;
}

static int admit(const struct mapping *mapping, uint64_t inode, bool is_written)
{
    if (mapping->is_shared && mapping->inode != inode) {
        debug("memory at %#" PRIx64 " is shared (MAP_SHARED, shmget); a NIC can have private memory"
              " only",
              mapping->from);
        return EOPNOTSUPP;
    }
    int needed = PROT_READ | (is_written ? PROT_WRITE : 0);
    return (mapping->protection & needed) == needed ? 0 : EFAULT;
}

/* Whether all of the range is mapped, and may be shared. Huge pages are shared as a whole. */
static int admit_all(struct shared_range *range, struct maps *maps, uint64_t inode, bool is_written)
{
    struct mapping mapping;
    uint64_t from = range->from;
    int error = 0;
    while (!error && from < range->to && next_mapping(maps, &mapping)) {
        if (mapping.to <= from)
            continue;
        if (mapping.from > from)
            return EFAULT;
        error = admit(&mapping, inode, is_written);
        if (mapping.is_huge) {
            range->from = smaller(range->from, mapping.from);
            range->to = larger(range->to, mapping.to);
        }
        from = mapping.to;
    }
    return error ? error : from < range->to ? EFAULT : 0;
}

/* Regions of memory that was here before keep a copy of it. So does the program, if it has moved
 * that memory. */
static int detach_others(int fd, uint64_t from, uint64_t to)
{
    int error = 0;
    for (const struct shared_range *other = ranges; other && !error; other = other->next) {
        struct uverbs_request request = {.command = UVERBS_DETACH_MR, .handle = other->handle};
        struct uverbs_reply reply;
        request.mr.addr = larger(from, other->from);
        uint64_t end = smaller(to, other->to);
        if (end <= request.mr.addr)
            continue;
        request.mr.length = end - request.mr.addr;
        if (!make_all_private(fd, request.mr.addr, end))
            return ENOMEM;
        error = ask(&request, NULL, 0, &reply);
    }
    return error;
}

static int share_all(const struct shared_range *range, struct maps *maps, int fd, uint64_t inode)
{
    struct mapping mapping;
    int error = 0;
    maps->next = maps->text;
    while (!error && next_mapping(maps, &mapping)) {
        uint64_t from = larger(range->from, mapping.from), to = smaller(range->to, mapping.to);
        if (from >= to || (is_own(&mapping, inode) && mapping.offset == mapping.from))
            continue;
        error = detach_others(fd, from, to);
        if (!error)
            error = share(fd, &mapping, from, to);
    }
    if (error == ENOMEM)
        debug("no more mappings: raise /proc/sys/vm/max_map_count, or register larger pieces");
    return error;
}

static int begin_sharing(struct shared_range *range, int fd, bool is_written)
{
    struct maps maps;
    int error = read_maps(&maps);
    if (error)
        return error;
    uint64_t inode = inode_of(fd);
    error = admit_all(range, &maps, inode, is_written);
    if (error == EFAULT)
        debug("%" PRIu64 " bytes from %#" PRIx64
              " are not mapped as a whole, or the program may not"
              " read or, for a NIC that writes, write them",
              range->length, range->addr);
    if (!error) {
        error = share_all(range, &maps, fd, inode);
        if (error)
            give_back(fd, range->from, range->to);
    }
    free_maps(&maps);
    if (!error)
        add(range);
    return error;
}

/* ---- in a thread of its own, if the pages hold the caller's stack, which then does not change  */

struct task {
    struct shared_range *range;
    int fd;
    bool begins, is_written;
    int error;
};

static void *carry_out(void *of)
{
    struct task *task = of;
    if (task->begins) {
        task->error = begin_sharing(task->range, task->fd, task->is_written);
    } else {
        drop(task->range);
        give_back(task->fd, task->range->from, task->range->to);
    }
    return NULL;
}

static bool holds_stack(const struct shared_range *range, const void *of_caller)
{
    uint64_t stack = (uintptr_t)of_caller;
    return range->from < stack + PAGE && range->to > stack - OWN_STACK;
}

static int run(struct task *task)
{
    pthread_t thread;
    int error = 0, errno_before = errno;
    pthread_mutex_lock(&sharing);
    sigset_t mask = block_signals();
    if (!holds_stack(task->range, task))
        carry_out(task);
    else if ((error = create_own_thread(&thread, NULL, carry_out, task)) == 0)
        pthread_join(thread, NULL);
    restore_signals(&mask);
    pthread_mutex_unlock(&sharing);
    errno = errno_before;
    return error ? error : task->error;
}

int share_pages(struct shared_range *range, bool is_written)
{
    const struct connection *nics = connection();
    if (!nics)
        return errno;
    if (range->length == 0 || range->addr + range->length < range->addr) {
        debug("a region of %" PRIu64 " bytes from %#" PRIx64
              " is empty, or ends beyond all addresses",
              range->length, range->addr);
        return EINVAL;
    }
    range->from = range->addr & ~(uint64_t)(PAGE - 1);
    range->to = (range->addr + range->length + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    struct task task = {
        .range = range, .fd = nics->memory_fd, .begins = true, .is_written = is_written};
    return run(&task);
}

void unshare_pages(struct shared_range *range)
{
    const struct connection *nics = present_connection();
    if (!nics)
        return;
    struct task task = {.range = range, .fd = nics->memory_fd};
    run(&task);
}

/* ---- fork
 * ----------------------------------------------------------------------------------------
 */

static int copied[2] = {-1, -1}; /* closed by the child when it has its copies */

void before_fork(void)
{
    pthread_mutex_lock(&sharing);
    if (!ranges || pipe2(copied, O_CLOEXEC) != 0)
        copied[0] = copied[1] = -1;
}

/* The parent does not write to pages that the child has not copied yet. It waits as one that
 * computes, so that emulated time stands. */
void after_fork(void)
{
    if (copied[0] >= 0) {
        struct pollfd child = {.fd = copied[0], .events = POLLIN};
        close(copied[1]);
        while (poll(&child, 1, 0) == 0) {
            is_active();
            sched_yield();
        }
        close(copied[0]);
    }
    pthread_mutex_unlock(&sharing);
}

void copy_shared_pages(int memory_fd)
{
    if (ranges)
        make_all_private(memory_fd, 0, INT64_MAX);
    ranges = NULL;
    if (copied[0] >= 0) {
        close(copied[0]);
        close(copied[1]);
    }
    pthread_mutex_init(&listing, NULL);
    pthread_mutex_init(&sharing, NULL);
}

/* ---- memory that is emptied ----------------------------------------------------------------- */

/* The pages of a shared file would keep their contents. */
static bool empty_shared(int fd, uint64_t from, uint64_t to)
{
    bool any = false;
    pthread_mutex_lock(&listing);
    for (const struct shared_range *range = ranges; range; range = range->next)
        if (larger(from, range->from) < smaller(to, range->to)) {
            forget_contents(fd, larger(from, range->from), smaller(to, range->to));
            any = true;
        }
    pthread_mutex_unlock(&listing);
    return any;
}

EXPORT int madvise(void *address, size_t length, int advice)
{
    static int (*real)(void *, size_t, int);
    const struct connection *nics = present_connection();
    if (!real)
        real = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "madvise");
    int result = real(address, length, advice);
    uint64_t from = (uintptr_t)address;
    if (!nics || (advice != MADV_DONTNEED && advice != MADV_FREE))
        return result;
    bool any = empty_shared(nics->memory_fd, from, from + length);
    return any && advice == MADV_FREE ? 0 : result;
}
