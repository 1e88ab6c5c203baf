/* Threads of programs as the kernel shows them: whether they sleep, and for how long they compute.
 *
 * The kernel's clock of another process moves when a thread leaves its processor, and with each
 * tick of the timer, every 4 ms on many machines. In between, a thread that has not left its
 * processor since the last look has computed all the time. Its schedstat counts how often it came
 * to a processor, its status how often it left one. */
#define _GNU_SOURCE /* O_CLOEXEC */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uverbs/server_state.h"

enum { PATH_BYTES = 64, TEXT_BYTES = 4096 };

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

uint32_t uverbs_thread_slots(const struct uverbs_session *session)
{
    uint32_t slots = load(&session->thread_slots);
    return slots < UVERBS_THREADS ? slots : UVERBS_THREADS;
}

/* The contents of a small file, in `text`. False: it has gone, with its thread. */
static bool read_text(int folder, const char *path, char text[TEXT_BYTES])
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, TEXT_BYTES - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* ---- sleep --------------------------------------------------------------------------------- */

/* Whether a thread sleeps until something wakes it. One that was stopped does not. */
static bool sleeps(int task_folder, const char *tid)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    if (snprintf(path, sizeof path, "%s/stat", tid) >= (int)sizeof path)
        return false;
    if (!read_text(task_folder, path, text))
        return true;                      /* it has ended */
    const char *end = strrchr(text, ')'); /* of its name */
    return end && end[1] == ' ' && strchr("SIZX", end[2]);
}

static bool waits_in_library(const struct uverbs_session *session, uint32_t tid)
{
    for (uint32_t i = 0; i < uverbs_thread_slots(session); i++)
        if (load(&session->threads[i].tid) == tid)
            return load(&session->threads[i].state) == UVERBS_WAITS;
    return false;
}

bool uverbs_all_threads_wait(const struct uverbs_client *client)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%u/task", client->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return true; /* it has ended */
    bool all = true;
    for (const struct dirent *task; all && (task = readdir(tasks));) {
        uint32_t tid = (uint32_t)strtoul(task->d_name, NULL, 10);
        all = tid == 0 || waits_in_library(client->session, tid) ||
              sleeps(dirfd(tasks), task->d_name);
    }
    closedir(tasks);
    return all;
}

/* ---- computing ------------------------------------------------------------------------------- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void uverbs_find_processor_clock(struct uverbs_client *client)
{
    if (clock_getcpuclockid((pid_t)client->pid, &client->processor) != 0)
        client->processor = CLOCK_MONOTONIC;
}

int64_t uverbs_processor_ns(const struct uverbs_client *client)
{
    return clock_ns(client->processor);
}

/* How often a thread came to a processor and left one. False: the kernel does not say. */
static bool count_switches(uint32_t pid, uint32_t tid, uint64_t *arrivals, uint64_t *departures)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    uint64_t yields = 0, preemptions = 0;
    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", pid, tid);
    if (!read_text(AT_FDCWD, path, text) || sscanf(text, "%*s %*s %" SCNu64, arrivals) != 1)
        return false;
    snprintf(path, sizeof path, "/proc/%u/task/%u/status", pid, tid);
    if (!read_text(AT_FDCWD, path, text))
        return false;
    const char *of = strstr(text, "\nvoluntary_ctxt_switches:");
    if (!of ||
        sscanf(of, " voluntary_ctxt_switches: %" SCNu64 " nonvoluntary_ctxt_switches: %" SCNu64,
               &yields, &preemptions) != 2)
        return false;
    *departures = yields + preemptions;
    return true;
}

/* How long it has computed since the last look at it, if it has not left its processor. */
static int64_t ran_ns(struct uverbs_run *run, uint32_t pid, uint32_t tid)
{
    uint64_t arrivals, departures;
    if (!count_switches(pid, tid, &arrivals, &departures))
        return 0;
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool runs = arrivals == departures + 1;
    bool is_same = runs && run->tid == tid && run->arrivals == arrivals;
    int64_t ran = is_same ? now_ns - run->seen_ns : 0;
    *run = (struct uverbs_run){.tid = runs ? tid : 0, .arrivals = arrivals, .seen_ns = now_ns};
    return ran;
}

/* The first threads of a process that do not wait in the library. */
static int64_t all_ran_ns(struct uverbs_client *client)
{
    const struct uverbs_session *session = client->session;
    struct uverbs_run *run = client->runs, *end = run + UVERBS_RUNS_SEEN;
    int64_t all = 0;
    for (uint32_t i = 0; i < uverbs_thread_slots(session) && run < end; i++)
        if (load(&session->threads[i].state) == UVERBS_RUNS)
            all += ran_ns(run++, client->pid, load(&session->threads[i].tid));
    return all;
}

void uverbs_begin_look(struct uverbs_client *client)
{
    client->looked_ns = uverbs_processor_ns(client);
    for (uint32_t i = 0; i < UVERBS_RUNS_SEEN; i++)
        client->runs[i].tid = 0;
}

int64_t uverbs_used_since_look(struct uverbs_client *client)
{
    int64_t now_ns = uverbs_processor_ns(client), used_ns = now_ns - client->looked_ns;
    int64_t ran = all_ran_ns(client);
    client->looked_ns = now_ns;
    return used_ns > ran ? used_ns : ran;
}
