/* AnyTensor: write a tensor helper once; it runs on whatever array the caller already has. */
#ifndef ANYTENSOR_H
#define ANYTENSOR_H

#include "anytensor/backend.h"
#include "anytensor/dlpack.h"
#include "anytensor/frame.h"
#include "anytensor/native.h"
#include "anytensor/ops.h"
#include "anytensor/types.h"

#endif
