/* The values that cross every border of the library: status codes, dtypes, sizes, handles.
 *
 * Nothing here owns memory. A handle names an array and the backend that understands it; who owns the
 * reference is a matter of frames (frame.h). Kernels include this header and no other. */
#ifndef ANYTENSOR_TYPES_H
#define ANYTENSOR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef AT_API
#define AT_API __attribute__((visibility("default")))
#endif

/** Greatest rank of an array. */
#define AT_MAX_NDIM 32

/** Outcome of a call. AT_OK is 0; everything but AT_OK and AT_DECLINE is an error. */
typedef enum at_status {
    AT_OK = 0,
    AT_DECLINE,      /* from a slot only: nothing special for these arguments, use the formula */
    AT_EARG,         /* an argument of the wrong kind, or missing */
    AT_EDTYPE,       /* the element type does not fit */
    AT_ESHAPE,       /* ranks or lengths do not fit */
    AT_EVALUE,       /* a size, an axis or another value out of its range */
    AT_EINDEX,       /* an index beyond the end of an axis */
    AT_EOVERFLOW,    /* an integer scalar does not fit the dtype of the array beside it */
    AT_EBACKEND,     /* arrays of two frameworks in one call */
    AT_EUNSUPPORTED, /* the backend cannot do this */
    AT_ENOMEM,       /* no memory */
    AT_EFOREIGN      /* the framework raised; its own error stays set where it lives */
} at_status;

/* Every element type: X(C name, enum suffix, bytes, kind), kind one of b(ool) i(nt) u(nsigned) f(loat),
 * in the order of the promotion lattice. */
#define AT_DTYPES(X)                                                                               \
    X(bool, BOOL, 1, 'b')                                                                          \
    X(int8, INT8, 1, 'i')                                                                          \
    X(int16, INT16, 2, 'i')                                                                        \
    X(int32, INT32, 4, 'i')                                                                        \
    X(int64, INT64, 8, 'i')                                                                        \
    X(uint8, UINT8, 1, 'u')                                                                        \
    X(uint16, UINT16, 2, 'u')                                                                      \
    X(uint32, UINT32, 4, 'u')                                                                      \
    X(uint64, UINT64, 8, 'u')                                                                      \
    X(float16, FLOAT16, 2, 'f')                                                                    \
    X(bfloat16, BFLOAT16, 2, 'f')                                                                  \
    X(float32, FLOAT32, 4, 'f')                                                                    \
    X(float64, FLOAT64, 8, 'f')

/** Element type. AT_NODTYPE stands for "not given"; AT_OTHER for a type that only the framework
 *  knows (complex, strings), which passes through where the library needs no arithmetic of its own. */
typedef enum at_dtype {
    AT_NODTYPE = 0,
#define X(name, NAME, size, kind) AT_##NAME,
    AT_DTYPES(X)
#undef X
        AT_OTHER
} at_dtype;

/** What a backend is; opaque here, see backend.h. */
typedef struct at_backend at_backend;

/** Handle of an array: by value, owns nothing, {0, 0} is nil. */
typedef struct at_array {
    void *p;
    const at_backend *be;
} at_array;

#define AT_NIL ((at_array){NULL, NULL})

/** A size: a number, or (sym not nil) a symbol that a tracing framework computes later. Arithmetic on
 *  it goes through at_dim_plus(); n means nothing while sym is set. AT_NO_DIM stands for "not given". */
typedef struct at_dim {
    int64_t n;
    at_array sym;
} at_dim;

#define AT_DIM(size) ((at_dim){(size), AT_NIL})
#define AT_NO_DIM AT_DIM(INT64_MIN)

/** Sizes of all axes. In at_reshape() one of them may be -1. */
typedef struct at_shape {
    int ndim;
    at_dim dim[AT_MAX_NDIM];
} at_shape;

/** Axes of a reduction; count -1 means all of them. */
typedef struct at_axes {
    int count;
    int axis[AT_MAX_NDIM];
} at_axes;

#define AT_ALL_AXES ((at_axes){.count = -1})

/** One axis; AT_NO_AXIS (Python's None) means "of the flattened array". */
#define AT_NO_AXIS INT32_MIN

/** A list of arrays: borrowed as an argument, owned by the frame of the call as a result. */
typedef struct at_list {
    int count;
    const at_array *array;
} at_list;

/** Where an axis is cut: into equal sections, or before each of some indices by Python's slice rule (negative ones
 *  count from the end; what lies beyond an end is that end). Made by AT_SECTIONS() or AT_CUTS(). */
typedef struct at_cuts {
    int64_t sections; /* INT64_MIN: by indices */
    int count;
    const at_dim *index;
} at_cuts;

#define AT_SECTIONS(number) ((at_cuts){(number), 0, NULL})
#define AT_CUTS(number, indices) ((at_cuts){INT64_MIN, (number), (indices)})

/** A Python-style scalar: it has a kind but no width, and takes the dtype of the array beside it. */
typedef enum at_scalar_kind { AT_WEAK_BOOL, AT_WEAK_INT, AT_WEAK_FLOAT } at_scalar_kind;

typedef struct at_scalar {
    at_scalar_kind kind;
    enum { AT_FITS_INT64, AT_FITS_UINT64, AT_FITS_NONE } range; /* of an integer */
    int64_t i; /* its value; above INT64_MAX its two's complement bits; else clamped */
    double d;  /* its value as a double, always set */
} at_scalar;

#ifdef __cplusplus
}
#endif
#endif
