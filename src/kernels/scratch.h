/* Memory that a kernel needs while it runs. */
#ifndef ATI_SCRATCH_H
#define ATI_SCRATCH_H

#include "anytensor/types.h"

/* size bytes, aligned to 64, with any contents; NULL for no memory. */
void *ati_scratch(int64_t size);

/* Ends the use of a block of that size; NULL is allowed. One large block (at most 64 MiB) is kept for the next kernel:
 * fresh pages for a table cost as much as the sums that go into it. */
void ati_scratch_free(void *block, int64_t size);

#endif
