/* Alarms: what happens at an emulated time, whatever the program's threads do then.
 *
 *     set_alarm ─▶ list by time ─▶ a thread of this library waits for the first ─▶ ring()
 *
 * That thread begins with the first alarm. It has a place as any other thread (waiting.c). So
 * emulated time stands until it has rung all alarms that are due, and what they wake runs. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <signal.h>

#include "library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct alarm *first;
static bool is_kept;
static int64_t *keeper_waits_until; /* NULL: it has not begun */

sigset_t lock_alarms(void)
{
    sigset_t before = block_signals();
    pthread_mutex_lock(&lock);
    return before;
}

void unlock_alarms(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    restore_signals(before);
}

static void take_out(struct alarm *alarm)
{
    for (struct alarm **at = &first; *at; at = &(*at)->next)
        if (*at == alarm) {
            *at = alarm->next;
            return;
        }
}

/* Those of one time ring in the order in which they were set. */
void put_alarm(struct alarm *alarm, int64_t at_ns)
{
    struct alarm **at = &first;
    take_out(alarm);
    while (*at && (*at)->at_ns <= at_ns)
        at = &(*at)->next;
    alarm->at_ns = at_ns;
    alarm->next = *at;
    *at = alarm;
}

static int64_t first_ns(void)
{
    return first ? first->at_ns : INT64_MAX;
}

static void ring_due(void)
{
    while (first && first->at_ns <= emulated_ns()) {
        struct alarm *due = first;
        first = due->next;
        due->has_rung = true;
        due->ring(due);
    }
}

/* Emulated time stands until a thread that waits for the lock has been woken. */
static void *keep_time(void *unused)
{
    sigset_t before;
    for (;;) {
        before = lock_alarms();
        ring_due();
        hold_time();
        uint32_t wakes = begin_wait(first_ns(), UVERBS_NO_NEWS);
        keeper_waits_until = own_end_of_wait();
        unlock_alarms(&before);
        release_time();
        if (!keeper_waits_until)
            return unused; /* there are too many threads */
        end_wait(wakes);
    }
}

/* If it does not wait now, it looks itself before it does. */
static void change_wait(void)
{
    if (keeper_waits_until)
        __atomic_store_n(keeper_waits_until, first_ns(), __ATOMIC_SEQ_CST);
    wake_resting_nics();
}

/* With the signals of lock_alarms blocked. */
static void begin_keeping(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    is_kept = create_own_thread(&thread, &attr, keep_time, NULL) == 0;
    pthread_attr_destroy(&attr);
    if (!is_kept)
        debug("there is no thread for time-outs: they do not end");
}

void set_alarm_locked(struct alarm *alarm, int64_t at_ns)
{
    alarm->has_rung = false;
    put_alarm(alarm, at_ns);
    if (!is_kept)
        begin_keeping();
    change_wait();
}

void clear_alarm_locked(struct alarm *alarm)
{
    take_out(alarm);
    change_wait();
}

void set_alarm(struct alarm *alarm, int64_t at_ns)
{
    sigset_t before = lock_alarms();
    set_alarm_locked(alarm, at_ns);
    unlock_alarms(&before);
}

void clear_alarm(void *alarm)
{
    sigset_t before = lock_alarms();
    clear_alarm_locked(alarm);
    unlock_alarms(&before);
}

void forget_alarms(void)
{
    pthread_mutex_init(&lock, NULL);
    first = NULL;
    is_kept = false;
    keeper_waits_until = NULL;
}
