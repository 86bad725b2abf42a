/* The native backend: arrays of the library's own, for programs in C.
 *
 *     at_context cx;
 *     at_frame root, *f = at_open(&root, at_context_init(&cx, at_native()));
 *     float x[4] = {1, 2, 4, 8};
 *     at_array a = at_native_copy(f, AT_FLOAT32, 1, (int64_t[]){4}, x);
 *
 * Arrays are immutable once made, counted by reference (atomically), strided, and 64-byte aligned where the
 * library allocated them. */
#ifndef ANYTENSOR_NATIVE_H
#define ANYTENSOR_NATIVE_H

#include "anytensor/frame.h"
#include "anytensor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The backend: pass it to at_context_init(). */
AT_API const at_backend *at_native(void);

/** An array with a copy of row-major data.
 *  Errors   AT_EVALUE a negative size or more than AT_MAX_NDIM axes; AT_ENOMEM. */
AT_API at_array at_native_copy(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                               const void *data);

/** An array over the caller's memory, which must outlive it. strides count bytes and may be negative;
 *  NULL means row-major. done(user) runs once when the last reference goes (NULL: nothing).
 *  Errors   AT_EVALUE as above; done has not run then. */
AT_API at_array at_native_wrap(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                               const int64_t *strides, void *data, void (*done)(void *user),
                               void *user);

/** Marks an array's memory as one that nobody may write, as DLPack then tells its consumers (dlpack.h); for the
 *  array's maker, before others see it. The library writes into no array that is made, marked or not. Views
 *  of it are marked, copies are not. */
AT_API void at_native_set_read_only(at_array a);
AT_API bool at_native_is_read_only(at_array a);

/** What a native array looks like: its first element, and, unless NULL, strides in bytes. */
AT_API const void *at_native_data(at_array a);
AT_API at_dtype at_native_dtype(at_array a);
AT_API int at_native_ndim(at_array a);
AT_API const int64_t *at_native_sizes(at_array a);
AT_API const int64_t *at_native_strides(at_array a);

/** Copies the elements into row-major memory of the caller; false when size is not their exact number of
 *  bytes. */
AT_API bool at_native_read(at_array a, void *data, size_t size);

/** Native arrays alive in this process (a debugging aid; tests expect 0 at the end). */
AT_API int64_t at_native_live(void);

/** Handle of a scalar; the at_scalar must outlive the call. */
AT_API at_array at_scalar_float(at_scalar *place, double value);
AT_API at_array at_scalar_int(at_scalar *place, int64_t value);
AT_API at_array at_scalar_bool(at_scalar *place, bool value);

#ifdef __cplusplus
}
#endif
#endif
