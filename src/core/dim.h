#ifndef ATI_DIM_H
#define ATI_DIM_H

#include "anytensor/frame.h"

/* Whether two sizes are equal; true where only run time can tell. False on failure, too. */
bool ati_dim_equal(at_frame *f, at_dim a, at_dim b);

#endif
