/* anytensor.native.Array, for the adapter that makes it an operand. */
#ifndef PA_NATIVE_ARRAY_TYPE_H
#define PA_NATIVE_ARRAY_TYPE_H

#include "edge.h"

#include <structmember.h>

#include "backends/native/native_array.h"

typedef struct pa_native_object {
    PyObject_HEAD
    at_array array; /* one reference */
    PyObject *weakrefs;
} pa_native_object;

/* The native array of an Array, borrowed. */
static inline at_array pa_native_of(const void *obj)
{
    return ((const pa_native_object *)obj)->array;
}

/* An Array that takes over one reference, which is released where there is no memory for it. */
PyObject *pa_native_new(const pa_state *st, at_array owned);

/* The type itself, new reference. */
PyTypeObject *pa_native_type(PyObject *module);

#endif
