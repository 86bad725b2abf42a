/* What the NumPy adapter holds, and what its two files share (pn_). */
#ifndef PN_NUMPY_STATE_H
#define PN_NUMPY_STATE_H

#include "edge.h"

#define PY_ARRAY_UNIQUE_SYMBOL pn_numpy_api
#ifdef PN_USES_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* NumPy's functions, each resolved once: X(name, where it lives). */
#define FUNCTIONS(X)                                                                               \
    X(exp, "exp")                                                                                  \
    X(log, "log")                                                                                  \
    X(sqrt, "sqrt")                                                                                \
    X(is_nan, "isnan")                                                                             \
    X(is_inf, "isinf")                                                                             \
    X(is_finite, "isfinite")                                                                       \
    X(add, "add")                                                                                  \
    X(sub, "subtract")                                                                             \
    X(mul, "multiply")                                                                             \
    X(div, "true_divide")                                                                          \
    X(equal, "equal")                                                                              \
    X(maximum, "maximum")                                                                          \
    X(minimum, "minimum")                                                                          \
    X(matmul, "matmul")                                                                            \
    X(sum, "add.reduce")                                                                           \
    X(prod, "multiply.reduce")                                                                     \
    X(min, "minimum.reduce")                                                                       \
    X(max, "maximum.reduce")

enum {
#define X(name, path) FN_##name,
    FUNCTIONS(X)
#undef X
        FN_COUNT
};

/* A scalar as a 0-d array that a ufunc may read: helpers use the same few constants again and again. */
typedef struct known_scalar {
    double value;
    int64_t integer;
    at_dtype dtype;
    PyObject *array; /* owned, never handed out */
} known_scalar;

#define KNOWN_SCALARS 16

typedef struct numpy_state {
    known_scalar known[KNOWN_SCALARS];
    PyObject *fn[FN_COUNT];
    vectorcallfunc call[FN_COUNT]; /* how fn is called: the function behind PyObject_Vectorcall() */
    PyArray_Descr *bfloat16;       /* ml_dtypes' type, once an array of it was seen; owned */
} numpy_state;

static inline PyArrayObject *array_of(at_array a) { return (PyArrayObject *)a.p; }

/* AT_OTHER where the library has no name for it. */
at_dtype pn_dtype_of(PyArray_Descr *d);

/* A new reference, or NULL with an exception. */
PyArray_Descr *pn_descr_of(const at_backend *be, at_dtype t);

/* The result of a NumPy call: a scalar becomes a 0-d array, failure AT_EFOREIGN. */
at_status pn_result(at_context *cx, const at_backend *be, PyObject *owned, at_array *out);

/* The dtype slot. */
at_status pn_dtype(at_context *cx, at_array a, at_dtype *out);

/* --- numpy_kernels.c --- */

at_status pn_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                  bool *known);

/* The larger (FN_maximum) or smaller of a small array and a scalar; AT_DECLINE for what is left to the ufunc. */
at_status pn_few_extremes(at_context *cx, const at_backend *be, int fn, at_array array,
                          const at_scalar *s, at_array *out);

/* The slots over segments and slots; not every composite has one. */
#define DECLARE(kind, name, ...)                                                                   \
    at_status numpy_##name(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),         \
                           at_array *out);
#define SLOT(...) DECLARE(SLOT, __VA_ARGS__)
#define SLOT_IDS(...) DECLARE(SLOT_IDS, __VA_ARGS__)
#define SPREAD(...) DECLARE(SPREAD, __VA_ARGS__)
#define SEGMENT(...) DECLARE(SEGMENT, __VA_ARGS__)
#define SEGMENT_LOGITS(...) DECLARE(SEGMENT_LOGITS, __VA_ARGS__)
#define SEGMENT_CONSTANT(...) DECLARE(SEGMENT_CONSTANT, __VA_ARGS__)
#define PARTITION_IDS(...) DECLARE(PARTITION_IDS, __VA_ARGS__)
#include "anytensor/ops.def"
#undef DECLARE

#endif
