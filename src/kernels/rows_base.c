/* The loops of rows_loops.h for any processor of this architecture. */
#define ATI_ROWS_NAME base
#include "kernels/rows_loops.h"
