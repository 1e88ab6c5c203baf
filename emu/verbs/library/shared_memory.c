/* Registered memory is the program's own: its pages become pages of a file that the NICs have
 * mapped, too, at the same addresses in the program.
 *
 *     the file      page of address A is at offset A
 *     registering   its contents are written there, then the file is mapped over the pages
 *
 * A page stays shared when its region is deregistered. If the program unmaps it and maps something
 * else there, /proc/self/maps shows that the page is not of the file any more. Bytes beside a
 * region in its first and last page become shared with it, which nobody notices. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

enum { LINE_BYTES = 512, PAGE = 4096 };

/* A line of /proc/self/maps. */
struct mapping {
    uint64_t from, to, offset, inode;
    int protection;
    bool is_shared;
};

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static bool read_mapping(const char *line, struct mapping *mapping)
{
    char rights[5];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64, &mapping->from,
               &mapping->to, rights, &mapping->offset, &mapping->inode) != 5)
        return false;
    mapping->protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                          (rights[2] == 'x' ? PROT_EXEC : 0);
    mapping->is_shared = rights[3] == 's';
    return true;
}

static int write_all(int fd, uint64_t from, uint64_t to)
{
    while (from < to) {
        /* The address is one of the program's, and its place in the file. */
        ssize_t written =
            pwrite(fd, (const void *)(uintptr_t)from, to - from, (off_t)from); // NOLINT
        if (written < 0 && errno != EINTR)
            return errno;
        from += written > 0 ? (uint64_t)written : 0;
    }
    return 0;
}

static int share(int fd, uint64_t from, uint64_t to, int protection)
{
    void *at = (void *)(uintptr_t)from; // NOLINT: an address of the program
    /* Nobody writes between the copy and the new mapping: a thread that tries waits (traps.c). */
    hold_writers(from, to);
    int error = mprotect(at, to - from, protection & ~PROT_WRITE) == 0 ? 0 : errno;
    if (!error)
        error = write_all(fd, from, to);
    if (!error && mmap(at, to - from, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)from) != at)
        error = errno;
    if (error)
        mprotect(at, to - from, protection);
    release_writers();
    return error;
}

/* Shares what of [from, to) is in this mapping. */
static int share_part(const struct connection *nics, uint64_t inode, const struct mapping *mapping,
                      uint64_t from, uint64_t to)
{
    from = from > mapping->from ? from : mapping->from;
    to = to < mapping->to ? to : mapping->to;
    if (mapping->is_shared && mapping->inode == inode)
        return 0;
    if (mapping->is_shared) {
        debug("memory at %#" PRIx64 " is shared with other processes already; a NIC cannot have it",
              from);
        return EOPNOTSUPP;
    }
    if (!(mapping->protection & PROT_READ))
        return EFAULT;
    return share(nics->memory_fd, from, to, mapping->protection);
}

struct pages {
    const struct connection *nics;
    uint64_t from, to;
    int error;
};

/* The mappings change while this runs, so it reads them again after each change. */
static void *share_all(void *of)
{
    struct pages *pages = of;
    struct stat file;
    fstat(pages->nics->memory_fd, &file);
    for (uint64_t from = pages->from; from < pages->to && !pages->error;) {
        struct mapping mapping = {0};
        char line[LINE_BYTES];
        FILE *maps = fopen("/proc/self/maps", "re");
        bool found = false;
        while (maps && !found && fgets(line, sizeof line, maps))
            found = read_mapping(line, &mapping) && mapping.from <= from && from < mapping.to;
        if (maps)
            fclose(maps);
        pages->error =
            found ? share_part(pages->nics, file.st_ino, &mapping, from, pages->to) : EFAULT;
        from = mapping.to;
    }
    return NULL;
}

/* In a thread of its own: the pages may hold the caller's stack, which then does not change. */
int share_pages(uint64_t addr, uint64_t length)
{
    struct pages pages = {.nics = connection(),
                          .from = addr & ~(uint64_t)(PAGE - 1),
                          .to = (addr + length + PAGE - 1) & ~(uint64_t)(PAGE - 1)};
    pthread_t thread;
    sigset_t all, before;
    if (!pages.nics)
        return errno;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_mutex_lock(&sharing);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, NULL, share_all, &pages);
    if (!error)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&sharing);
    return error ? error : pages.error;
}
