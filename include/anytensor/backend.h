/* What a backend is: a table of functions that understand one kind of array.
 *
 * Two layers only. Below this line, slots return a status and hand their result out through `out`; above
 * it everything works with frames (frame.h) and handles. A slot
 *   - borrows its operands and gives `out` one new reference, also where the result is an operand itself (of an op
 *     with several results: one in each of as many places);
 *   - may count on what the wrapper in src/ops/dispatch.c has done: operands belong to this backend, data
 *     operands are arrays of the dtype that the op's rule asks for (never scalars, but see
 *     AT_TAKES_SCALARS), index operands are integral, masks are bool. A VALUE operand may still be a scalar;
 *   - never reads array values but where its contract says so;
 *   - records an error with at_error() and returns its code (AT_EFOREIGN: the framework's own error stays
 *     set), or returns AT_DECLINE (composites only) to ask for the formula. */
#ifndef ANYTENSOR_BACKEND_H
#define ANYTENSOR_BACKEND_H

#include "anytensor/frame.h"
#include "anytensor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Roles of arguments, and the C type of each. */
#define ATI_CTYPE_DATA at_array     /* takes part in promotion */
#define ATI_CTYPE_MAYBE at_array    /* the same, may be nil */
#define ATI_CTYPE_INDEX at_array    /* integral, any width */
#define ATI_CTYPE_MASK at_array     /* cast to bool */
#define ATI_CTYPE_VALUE at_array    /* a scalar or an array; cast by the op itself */
#define ATI_CTYPE_BOUND at_array    /* the same; a number of NumPy is read at once */
#define ATI_CTYPE_LIKE at_array     /* decides the backend, dtype and device only; may be nil */
#define ATI_CTYPE_LIST at_list      /* data operands */
#define ATI_CTYPE_SIZE at_dim       /* one size, not negative */
#define ATI_CTYPE_MAYBE_SIZE at_dim /* the same, or AT_NO_DIM */
#define ATI_CTYPE_SHAPE const at_shape *
#define ATI_CTYPE_AXES at_axes
#define ATI_CTYPE_CUTS at_cuts
#define ATI_CTYPE_AXIS int /* or AT_NO_AXIS */
#define ATI_CTYPE_FLAG bool
#define ATI_CTYPE_DTYPE at_dtype      /* or AT_NODTYPE */
#define ATI_CTYPE_DEVICE const void * /* the framework's own word for it, or NULL */

/* A signature as C parameters, and as arguments, each with a leading comma. */
#define ATI_PARAM(name, role, text, how) , ATI_CTYPE_##role name
#define ATI_ARG(name, role, text, how) , name

/** What holds for all arrays of a backend. */
enum {
    AT_WEAK = 1u, /* scalars: they take the dtype of what is beside them */
    AT_JOINS =
        2u, /* host memory: arrays join the other framework in a call through its adopt slot */
    /* slot_sum and the segment ops add float16 and bfloat16 in float32 by themselves */
    AT_WIDE_SUMS = 4u,
    /* data operands of elementwise ops may stay scalars beside an array of the common dtype */
    AT_TAKES_SCALARS = 8u,
    /* sizes may be symbols; backends without this see numbers only */
    AT_TAKES_SYMBOLS = 16u
};

struct at_backend {
    const char *name; /* as users know it: "numpy", "torch" */
    unsigned traits;
    void *state; /* the adapter's own */

    /** One reference more, one less. Never fail. */
    void (*retain)(void *p);
    void (*release)(void *p);

    /** Element type; AT_OTHER where the library has no name for it. Of a weak backend: AT_BOOL, AT_INT64
     *  or AT_FLOAT64 for the kind of scalar. */
    at_status (*dtype)(at_context *cx, at_array a, at_dtype *out);

    /** Sizes; a symbolic one comes as a new reference. AT_ESHAPE above AT_MAX_NDIM. */
    at_status (*shape)(at_context *cx, at_array a, at_shape *out);

    /** Default float ('f') or integer ('i') type. */
    at_dtype (*default_dtype)(const at_backend *be, char kind);

    /** An array of this backend from one of a joining backend, on like's device (nil: the default one),
     *  sharing memory where it can. */
    at_status (*adopt)(at_context *cx, const at_backend *be, at_array a, at_array like,
                       at_array *out);

    /** A 0-d array of the given dtype from a scalar (handle of a weak backend), on like's device. The
     *  caller has checked that an integer fits. */
    at_status (*from_scalar)(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype,
                             at_array like, at_array *out);

    /** The size that a 0-d integral array holds: read, or kept as a symbol (new reference). */
    at_status (*to_size)(at_context *cx, at_array a, at_dim *out);

    /** sym + k, for a symbol of this backend (new reference). May be NULL without symbols. */
    at_status (*dim_plus)(at_context *cx, at_array sym, int64_t k, at_array *out);

    /** Whether two sizes, at least one a symbol of this backend, are equal; true where only run time
     *  can tell. May be NULL without symbols. */
    at_status (*dim_equal)(at_context *cx, const at_backend *be, at_dim a, at_dim b, bool *out);

    /** Whether a derivative may be taken through this array. NULL: never. */
    bool (*tracked)(at_context *cx, at_array a);

    /** Sum and least of a 0-d array or vector of integers, if they lie on the host and may be read here and
     *  now (no trace, no device); known says so. needed: the op cannot do without reading them (its result's
     *  length depends on them), so a backend that reads nothing for a check's sake reads them here. NULL:
     *  never known. */
    at_status (*peek)(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                      bool *known);

    /* One slot per op, in the order of the table. */
#define OP(kind, name, ...)                                                                        \
    at_status (*name)(at_context * cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),             \
                      at_array *out);
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
};

/** The backend of scalars: a handle's p is a const at_scalar *, borrowed for the call. */
AT_API extern const at_backend at_weak;

/** Checks that all that every backend must have is there; to be called once when one is made.
 *  Errors   AT_EUNSUPPORTED naming the first missing slot. */
AT_API at_status at_backend_check(at_context *cx, const at_backend *be);

#ifdef __cplusplus
}
#endif
#endif
