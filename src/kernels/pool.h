/* The library's own threads: as many as the process may use, started at the first call that needs them.
 *
 * No OpenMP: its threads do not survive fork(), and a kernel in the child would wait for them for ever (torch's
 * DataLoader forks). Here the child starts threads of its own. A second caller, while the threads are at work,
 * does its tasks by itself, so that nothing waits for a stranger's kernel and no call can lock up. */
#ifndef ATI_POOL_H
#define ATI_POOL_H

#include "anytensor/types.h"

/* Most threads that a kernel uses. */
enum { ATI_MOST_THREADS = 256 };

/* Threads that a kernel may use, the caller's included: AT_NUM_THREADS, or the processors of the affinity mask,
 * at most what the cgroup's quota pays for. Read once per process. */
int ati_pool_threads(void);

/* As many of them as are worth it for this much work; grain is the least work of a thread. */
int ati_pool_threads_for(int64_t work, int64_t grain);

typedef void ati_task(void *job, int index);

/* Calls task(job, 0), ..., task(job, count - 1), on several threads and in any order; returns when all are done. */
void ati_pool_run(int count, ati_task *task, void *job);

/* Threads that belong to somebody else. */
typedef struct ati_lender {
    int (*threads)(void);
    void (*run)(int count, ati_task *task, void *job); /* as ati_pool_run() */
} ati_lender;

/* From here on this thread's kernels run on borrowed threads: within torch on torch's own, since two sets of threads
 * would fight for the processors. Gives back who lent before; NULL is the pool itself. */
const ati_lender *ati_pool_borrow(const ati_lender *lender);

/* Where part k of total begins, cut in equal parts; part k ends where the next one begins. */
static inline int64_t ati_part(int64_t total, int k, int parts)
{
    return total / parts * k + total % parts * k / parts;
}

#endif
