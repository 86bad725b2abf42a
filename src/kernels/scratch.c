/* Large blocks ask for large pages: tables are met in random order, and of small pages the processor knows too few. Such
 * pages are dear to get (the kernel clears 2 MiB at a time), so that a block is kept and used again. */
#define _GNU_SOURCE
#include "kernels/scratch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, LARGE_PAGE = 1 << 21, LEAST = 1 << 20, MOST = 1 << 26 };

/* Its size stands at its beginning while it is kept. */
static _Atomic(void *) kept;

static void *fresh(int64_t size)
{
    size_t unit = size >= LEAST ? LARGE_PAGE : LINE;
    size_t whole = ((size_t)size + unit) / unit * unit;
    void *block = aligned_alloc(unit, whole);
#if defined(MADV_HUGEPAGE)
    if (block != NULL && unit == LARGE_PAGE) madvise(block, whole, MADV_HUGEPAGE); /* or not */
#endif
    return block;
}

void *ati_scratch(int64_t size)
{
    if (size > INT64_MAX - LARGE_PAGE) return NULL;
    void *block = size >= LEAST && size <= MOST ? atomic_exchange(&kept, NULL) : NULL;
    /* A block up to four times too large serves: pages that nobody touches cost nothing. */
    if (block != NULL && *(int64_t *)block >= size && *(int64_t *)block / 4 <= size) return block;
    free(block);
    return fresh(size);
}

void ati_scratch_free(void *block, int64_t size)
{
    if (block != NULL && size >= LEAST && size <= MOST) {
        *(int64_t *)block = size;
        block = atomic_exchange(&kept, block);
    }
    free(block);
}

__attribute__((destructor)) static void let_go(void) { free(atomic_exchange(&kept, NULL)); }
