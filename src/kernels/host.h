/* One view of host memory that every kernel works on; it owns nothing.
 *
 * NumPy arrays and native arrays both become views, so that they share all kernels. Memory may be
 * strided, negatively strided, overlapping through zero strides, and misaligned (kernels load elements
 * through memcpy); never byte-swapped. Outputs are row-major and aligned. */
#ifndef ATI_HOST_H
#define ATI_HOST_H

#include "anytensor/types.h"

typedef struct ati_host {
    void *data;
    at_dtype dtype;
    int ndim;
    int64_t dim[AT_MAX_NDIM];
    int64_t stride[AT_MAX_NDIM]; /* bytes */
} ati_host;

#endif
