/* What the parts of the cache share: cache.c keeps entries, cache_value.c looks through what is to be kept. */
#ifndef PA_CACHE_H
#define PA_CACHE_H

#include "edge.h"

/* What an entry is of: one object, or a tuple of them. As Python sees it a callable, as a weak reference is: it gives
 * the object, or None once (one of) it is gone. */
typedef struct pa_key {
    PyObject_HEAD
    bool single, places; /* one object; the value has places for weak references */
    PyObject *refs;      /* tuple: a weak reference each, or (object,) of what refuses one */
    PyObject *versions;  /* tuple, or NULL without torch's tensors: how often each was written to */
    PyObject *mode;   /* a weak reference to what watched torch when the value was made, or NULL */
    PyObject *pulses; /* list of weak references: the entry goes when one of them dies */
} pa_key;

/* A value that is about to be kept, seen beside its key. */
typedef struct pa_look {
    pa_state *st;
    PyObject *const *key; /* borrowed */
    Py_ssize_t keys;
    PyObject *traces; /* list: the trace of each key, None where it holds values */
    PyObject *pulses; /* list: what dies with the traces of the value */
    PyObject *seen;   /* set: containers that have been looked through */
    bool refuse;      /* the value must not be kept */
    bool places;      /* the value holds arrays that it must not keep alive */
} pa_look;

/* Looks through a value; 0, or -1 with an exception. pa_look_close() in every case. */
int pa_look_through(pa_look *look, pa_state *st, PyObject *const *key, Py_ssize_t keys,
                    PyObject *value);
void pa_look_close(pa_look *look);

/* The value with weak references in the places of such arrays, and back: NULL without an exception where one of them is
 * gone. New references. */
PyObject *pa_value_in(const pa_look *look, PyObject *value);
PyObject *pa_value_out(pa_state *st, PyObject *kept);

/* The type of such a place; -1 with an exception. */
int pa_place_init(pa_state *st);

#endif
