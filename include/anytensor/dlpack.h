/* DLPack in and out: native arrays share memory with other libraries, without a copy.
 *
 *     at_array a = at_from_dlpack_versioned(f, managed);      // a consumer: the tensor is the array's now
 *     at_to_dlpack_versioned(&cx, a, AT_DLPACK_SHARE, &out);  // a producer: hand out to whoever wants it
 *
 * The two structs are DLPack's own; a program that includes its <dlpack/dlpack.h> sees them whole, in either
 * order with this header. Memory is the CPU's (kDLCPU) on both ways.
 *
 * Ownership passes at success, and only then: what could not be imported is still the caller's, who runs its
 * deleter or tries something else. An exported tensor keeps its elements alive by itself; its deleter needs no
 * context, may run on any thread, and after every array is gone. */
#ifndef ANYTENSOR_DLPACK_H
#define ANYTENSOR_DLPACK_H

#include "anytensor/frame.h"
#include "anytensor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Whose memory an exported tensor shows. */
typedef enum at_dlpack_rule {
    AT_DLPACK_SHARE, /* the array's own, or an error */
    AT_DLPACK_COPY_IF_NEEDED, /* a copy where DLPack cannot spell the array's strides, or one is negative (torch ends
                                 the process then) */
    AT_DLPACK_COPY /* always a row-major copy, which is never read-only */
} at_dlpack_rule;

/** An array over the memory of a tensor; its deleter (if it has one) runs once, when the last reference goes.
 *  Shapes   any up to AT_MAX_NDIM axes; strides of every kind, NULL for row-major; byte_offset counts.
 *  Dtypes   bool, integers, float16, bfloat16, float32, float64; one lane.
 *  Errors   AT_EDTYPE another element type, or lanes; AT_EVALUE a negative size, too many axes, no memory for
 *           elements, sizes or strides beyond an int64; AT_EUNSUPPORTED another device than the CPU;
 *           AT_EARG managed is NULL; AT_ENOMEM. The tensor is still the caller's then.
 *  Owns     the array belongs to f, the tensor to the array.  Cost  no copy. */
AT_API at_array at_from_dlpack(at_frame *f, struct DLManagedTensor *managed);

/** The same from the versioned struct; the array is read-only if the tensor is.
 *  Errors   as above; AT_EUNSUPPORTED also for a major version other than 1, of which nothing more is read. */
AT_API at_array at_from_dlpack_versioned(at_frame *f, struct DLManagedTensorVersioned *managed);

/** A tensor over the elements of an array, which live until its deleter runs.
 *  Strides  always given, in elements; byte_offset is 0.
 *  Errors   AT_EUNSUPPORTED a read-only array, which this struct cannot say (AT_DLPACK_COPY can), or, when memory
 *           must be shared, strides that are no multiple of the element size; AT_EARG a is nil; AT_EBACKEND it is no
 *           native array; AT_ENOMEM. *out is NULL then.
 *  Owns     the caller, who runs (*out)->deleter(*out) once or passes that duty on. */
AT_API at_status at_to_dlpack(at_context *cx, at_array a, at_dlpack_rule rule,
                              struct DLManagedTensor **out);

/** The same as a versioned struct (1.0), with the flags for read-only memory and for copies.
 *  Errors   as above, but read-only arrays are fine. */
AT_API at_status at_to_dlpack_versioned(at_context *cx, at_array a, at_dlpack_rule rule,
                                        struct DLManagedTensorVersioned **out);

#ifdef __cplusplus
}
#endif
#endif
