/* Descriptors that this library keeps for itself. The program has not opened them, and so it cannot
 * close them, or put a file of its own in their place: a NIC goes on, whatever a program closes.
 *
 *     close                       EBADF
 *     close_range, closefrom      leave them open
 *     dup2, dup3 to one of them   it moves to another number first
 *
 * Between vfork and exec a child has the same memory, but descriptors of its own: there, the calls
 * do what they always do. */
#define _GNU_SOURCE /* RTLD_NEXT, close_range */

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "library.h"

enum { MOST = 1024, NOWHERE = -1 };

/* Signals are blocked for as long as a thread changes the list. To read it takes no lock: a
 * signal's handler may close files, too. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int *file; /* where the library looks up the number; NULL: the place is free */
    int number;
} kept[MOST];
static unsigned used; /* no place from here on was ever in use */
static pid_t owner;

/* ---- the list ------------------------------------------------------------------------------ */

static sigset_t begin_change(void)
{
    sigset_t before = block_signals();
    pthread_mutex_lock(&changing);
    return before;
}

static void end_change(const sigset_t *before)
{
    pthread_mutex_unlock(&changing);
    restore_signals(before);
}

static int number_at(unsigned place)
{
    return __atomic_load_n(&kept[place].file, __ATOMIC_ACQUIRE)
               ? __atomic_load_n(&kept[place].number, __ATOMIC_ACQUIRE)
               : NOWHERE;
}

/* Its place. `used`: it is none of them, or this is the child of a vfork. */
static unsigned place_of(int number)
{
    unsigned end = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < end; i++)
        if (number >= 0 && number_at(i) == number)
            return getpid() == owner ? i : end;
    return end;
}

static bool is_kept(int number)
{
    return place_of(number) < __atomic_load_n(&used, __ATOMIC_ACQUIRE);
}

/* With no free place the program could close it, as without this list. */
void keep_file(int *file)
{
    if (*file < 0)
        return;
    sigset_t before = begin_change();
    owner = getpid();
    unsigned place = 0;
    while (place < used && kept[place].file)
        place++;
    if (place < MOST) {
        __atomic_store_n(&kept[place].number, *file, __ATOMIC_RELEASE);
        __atomic_store_n(&kept[place].file, file, __ATOMIC_RELEASE);
        if (place == used)
            __atomic_store_n(&used, place + 1, __ATOMIC_RELEASE);
    }
    end_change(&before);
}

void drop_file(int *file)
{
    if (*file < 0)
        return;
    sigset_t before = begin_change();
    for (unsigned i = 0; i < used; i++)
        if (kept[i].file == file)
            __atomic_store_n(&kept[i].file, NULL, __ATOMIC_RELEASE);
    REAL(close)(*file);
    *file = NOWHERE;
    end_change(&before);
}

void forget_files(void)
{
    pthread_mutex_init(&changing, NULL);
    for (unsigned i = 0; i < used; i++)
        if (kept[i].file)
            REAL(close)(kept[i].number);
    memset(kept, 0, sizeof kept);
    used = 0;
}

/* Another thread that has just looked up the number may still use it once. */
static bool move(unsigned place)
{
    int moved = fcntl(kept[place].number, F_DUPFD_CLOEXEC, 0);
    if (moved < 0)
        return false;
    __atomic_store_n(&kept[place].number, moved, __ATOMIC_RELEASE);
    __atomic_store_n(kept[place].file, moved, __ATOMIC_RELEASE);
    return true;
}

/* The program puts `from` in the place of `to`. False: there is no other number, with errno. */
static bool make_way(int from, int to)
{
    if (from == to || !is_kept(to) || fcntl(from, F_GETFD) < 0)
        return true;
    sigset_t before = begin_change();
    unsigned place = place_of(to);
    bool done = place >= used || move(place);
    end_change(&before);
    return done;
}

/* ---- calls of the program ------------------------------------------------------------------ */

EXPORT int close(int file)
{
    if (is_kept(file)) {
        errno = EBADF;
        return -1;
    }
    close_timer(file);
    return REAL(close)(file);
}

EXPORT int dup2(int from, int to)
{
    return make_way(from, to) ? REAL(dup2)(from, to) : -1;
}

EXPORT int dup3(int from, int to, int flags)
{
    return make_way(from, to) ? REAL(dup3)(from, to, flags) : -1;
}

/* The first of them from `first` to `last`. False: there is none. */
static bool next_kept(unsigned first, unsigned last, unsigned *number)
{
    unsigned end = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    bool any = false;
    for (unsigned i = 0; i < end; i++) {
        int here = number_at(i);
        unsigned one = (unsigned)here;
        if (here < 0 || one < first || one > last || (any && one > *number))
            continue;
        *number = one;
        any = true;
    }
    return any && getpid() == owner;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    unsigned number = 0;
    while (first <= last && next_kept(first, last, &number)) {
        if (number > first && REAL(syscall)(SYS_close_range, first, number - 1, flags) != 0)
            return -1;
        if (number == last)
            return 0;
        first = number + 1;
    }
    return (int)REAL(syscall)(SYS_close_range, first, last, flags);
}

EXPORT void closefrom(int lowest)
{
    unsigned first = lowest < 0 ? 0 : (unsigned)lowest;
    if (close_range(first, UINT_MAX, 0) == 0)
        return;
    long most = sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
    for (long file = first; file < most; file++)
        close((int)file);
}
