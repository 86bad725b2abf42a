/* Threads that sleep on a condition until a job is there, and take its tasks by a counter.
 *
 * One job at a time: `busy` is taken by trying, never waited for. Workers are as many as the pool has; a job with
 * fewer tasks leaves some without one. Forked children have no workers left and start anew. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/pool.h"

/* --- how many ------------------------------------------------------------------------------------------- */

static int within(int64_t threads)
{
    if (threads < 1) return 1;
    return threads < ATI_MOST_THREADS ? (int)threads : ATI_MOST_THREADS;
}

/* Processors that the process may run on. */
static int64_t affinity(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return sysconf(_SC_NPROCESSORS_ONLN);
}

/* The first line of a file; false where there is none. */
static bool first_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    bool fine = file != NULL && fgets(line, size, file) != NULL;
    if (file != NULL) fclose(file);
    return fine;
}

static int64_t processors(double quota, double period)
{
    return quota > 0 && period > 0 ? (int64_t)(quota / period + 0.999) : ATI_MOST_THREADS;
}

/* What a folder of cgroup v2 pays for: "max 100000", or microseconds of "quota period". */
static int64_t quota_of(const char *folder)
{
    char path[600], line[64];
    double quota, period;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    if (!first_line(path, line, sizeof line) || sscanf(line, "%lf %lf", &quota, &period) != 2)
        return ATI_MOST_THREADS;
    return processors(quota, period);
}

/* The least quota of this process's cgroup and those above it. */
static int64_t quota_v2(void)
{
    char line[512], *folder;
    int64_t least = quota_of("");
    if (!first_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::/", 4) != 0)
        return least;
    line[strcspn(line, "\n")] = 0;
    for (folder = line + 3; folder[0] != 0 && folder[1] != 0; *strrchr(folder, '/') = 0) {
        int64_t quota = quota_of(folder);
        least = quota < least ? quota : least;
    }
    return least;
}

static int64_t quota_v1(void)
{
    char quota[64], period[64];
    if (!first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) ||
        !first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period))
        return ATI_MOST_THREADS;
    return processors(atof(quota), atof(period));
}

static int count_threads(void)
{
    const char *wish = getenv("AT_NUM_THREADS");
    char *end;
    long asked = wish == NULL ? 0 : strtol(wish, &end, 10);
    if (asked > 0 && *end == 0) return within(asked);
    int64_t most = affinity(), v2 = quota_v2(), v1 = quota_v1();
    most = v2 < most ? v2 : most;
    return within(v1 < most ? v1 : most);
}

static _Thread_local const ati_lender *lent_by;

/* A lender's threads may not live in a forked child (libgomp's do not, and a call would wait for them for ever). */
static bool forked;
static bool watch_forks(void);

const ati_lender *ati_pool_borrow(const ati_lender *lender)
{
    const ati_lender *before = lent_by;
    lent_by = watch_forks() && !forked ? lender : NULL;
    return before;
}

int ati_pool_threads(void)
{
    static atomic_int known; /* two threads may both count; they find the same */
    if (lent_by != NULL) return within(lent_by->threads());
    int threads = atomic_load_explicit(&known, memory_order_relaxed);
    if (threads == 0) {
        threads = count_threads();
        atomic_store_explicit(&known, threads, memory_order_relaxed);
    }
    return threads;
}

int ati_pool_threads_for(int64_t work, int64_t grain)
{
    int64_t worth = work / grain;
    if (worth < 2) return 1;
    int most = ati_pool_threads();
    return worth < most ? within(worth) : most;
}

/* --- the pool ------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t busy; /* held by the caller whose job it is */
    pthread_mutex_t lock; /* of all below but next */
    pthread_cond_t work, done;
    pthread_t worker[ATI_MOST_THREADS];
    int workers;
    bool started, ends;
    int tickets; /* workers that may still join this job */
    int at_work; /* those that have joined and not left */
    ati_task *task;
    void *job;
    int count;
    atomic_int next;
} pool = {.busy = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void take_tasks(ati_task *task, void *job, int count)
{
    int index;
    while ((index = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < count)
        task(job, index);
}

static void *work(void *unused)
{
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.tickets == 0 && !pool.ends) pthread_cond_wait(&pool.work, &pool.lock);
        if (pool.ends) break;
        ati_task *task = pool.task;
        void *job = pool.job;
        int count = pool.count;
        pool.tickets--;
        pool.at_work++;
        pthread_mutex_unlock(&pool.lock);
        take_tasks(task, job, count);
        pthread_mutex_lock(&pool.lock);
        if (--pool.at_work == 0) pthread_cond_signal(&pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
    return unused;
}

/* In a forked child no worker lives, and locks may be held by threads that do not. */
static void start_anew(void)
{
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = false;
    pool.workers = pool.tickets = pool.at_work = 0;
    forked = true;
    lent_by = NULL;
}

static bool watched;

static void watch(void) { watched = pthread_atfork(NULL, NULL, start_anew) == 0; }

static bool watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return watched;
}

/* Starts the workers, once. Signals are for the program's own threads. */
static void start_workers(int wanted)
{
    sigset_t all, before;
    if (pool.started) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (watch_forks() && pool.workers < wanted &&
           pthread_create(&pool.worker[pool.workers], NULL, work, NULL) == 0)
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool.started = true;
}

/* A worker that wakes too late finds no ticket, and nobody waits for it. */
static void run_together(int count, ati_task *task, void *job)
{
    pthread_mutex_lock(&pool.lock);
    pool.task = task;
    pool.job = job;
    pool.count = count;
    pool.tickets = count - 1 < pool.workers ? count - 1 : pool.workers;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    for (int k = 0; k < pool.tickets; k++) pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    take_tasks(task, job, count);
    pthread_mutex_lock(&pool.lock);
    pool.tickets = 0;
    while (pool.at_work > 0) pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void ati_pool_run(int count, ati_task *task, void *job)
{
    if (count > 1 && lent_by != NULL) {
        lent_by->run(count, task, job);
        return;
    }
    bool together = count > 1 && ati_pool_threads() > 1 && pthread_mutex_trylock(&pool.busy) == 0;
    if (!together) {
        for (int index = 0; index < count; index++) task(job, index);
        return;
    }
    start_workers(ati_pool_threads() - 1);
    run_together(count, task, job);
    pthread_mutex_unlock(&pool.busy);
}

/* At the end of the process (or when the library is unloaded) no thread may be left in its code. */
__attribute__((destructor)) static void end_workers(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.ends = true;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int w = 0; w < pool.workers; w++) pthread_join(pool.worker[w], NULL);
    pool.workers = 0;
    pool.ends = false;
}
