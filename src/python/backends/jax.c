/* The JAX adapter: every op is one function that JAX has compiled.
 *
 * Eager JAX dispatches each small call by itself, which costs more than the work. So the slot of an op hands its
 * operands to one jitted function per op, made at first use: jax.jit(_formula(flags, op, ...)), whose static arguments are
 * sizes, axes and flags. Tracing it calls the op again, with AT_GENERIC in its context: there composites are formulas
 * and primitives are lax calls (jax_lax.c). Inside grad, vmap, shard_map or an outer jit the same function is inlined from
 * JAX's cache. There are two per op: where all operands hold values no derivative can be taken through them, and
 * the formula may leave out what only a derivative needs.
 *
 * Constructors, and repeat without a total, whose length depends on values, stay outside (jax_array.c). */
#include "jax_state.h"

#include "core/dtype.h"

/* --- one jitted function per op -------------------------------------------------------------------------- */

/* Roles that the jitted function traces; the others are static: they decide its shape. */
static bool is_traced_role(pa_role role) { return role < PA_LIKE || role == PA_LIST; }

/* Positions of the static arguments. */
static PyObject *static_arguments(pa_frame *f, const pa_signature *sig)
{
    PyObject *list = pa_keep(f, PyList_New(0));
    for (int i = 0; list != NULL && i < sig->count; i++) {
        if (is_traced_role(sig->param[i].role)) continue;
        PyObject *at = PyLong_FromLong(i);
        if (at == NULL || PyList_Append(list, at) < 0) list = pa_keep(f, NULL);
        Py_XDECREF(at);
    }
    return list == NULL ? NULL : pa_keep(f, PyList_AsTuple(list));
}

/* functools.partial(_formula, flags, op), named like the op in profiles and lowered programs. */
static PyObject *body_of(pa_frame *f, const jax_state *st, int op, bool tracked)
{
    PyObject *formula = pa_keep(f, PyObject_GetAttrString(st->home->module, "_formula"));
    PyObject *flags = pa_int(f, AT_GENERIC | (tracked ? 0 : AT_UNTRACKED));
    PyObject *body = pa_call(f, st->partial, formula, flags, pa_int(f, op));
    PyObject *name = pa_keep(f, PyUnicode_FromString(pa_signature_at(op)->name));
    if (body == NULL || name == NULL || PyObject_SetAttrString(body, "__name__", name) < 0)
        return pa_keep(f, NULL);
    return body;
}

/* New reference, or NULL with an exception. */
static PyObject *make_jitted(const jax_state *st, int op, bool tracked)
{
    pa_frame f;
    pa_open(&f);
    PyObject *body = body_of(&f, st, op, tracked);
    PyObject *still = static_arguments(&f, pa_signature_at(op));
    PyObject *names = pa_keep(&f, Py_BuildValue("(ss)", "static_argnums", "inline"));
    PyObject *made =
        names == NULL ? NULL : pa_call_named(&f, st->fn[FN_jit], names, body, still, Py_True);
    return pa_take(&f, made);
}

/* Borrowed. Another thread may have been faster while JAX was at work: its function stays. */
static PyObject *jitted(jax_state *st, int op, bool tracked)
{
    PyObject **place = &st->jitted[op][tracked];
    if (*place != NULL) return *place;
    PyObject *made = make_jitted(st, op, tracked);
    if (*place == NULL)
        *place = made;
    else
        Py_XDECREF(made);
    return *place;
}

/* --- a call of it ------------------------------------------------------------------------------------------ */

typedef struct through {
    const at_backend *be;
    pa_frame f;
    int count;
    bool tracked;
    PyObject *arg[PA_MAX_PARAMS + 1]; /* the first place is vectorcall's own */
} through;

static void push(through *t, PyObject *obj)
{
    t->count++;
    t->arg[t->count] = obj;
    if (obj == NULL) t->f.failed = true;
}

static void push_DATA(through *t, at_array a)
{
    if (!t->tracked) t->tracked = pj_traced(state_of(t->be), a.p);
    push(t, a.p);
}

static void push_MAYBE(through *t, at_array a)
{
    if (at_is_nil(a))
        push(t, Py_None);
    else
        push_DATA(t, a);
}

#define push_INDEX push_DATA
#define push_MASK push_DATA

/* The dtype that holds a scalar exactly, as far as JAX has one now. */
static at_dtype dtype_for(const at_backend *be, at_array a)
{
    const at_scalar *s = a.be == &at_weak ? a.p : NULL;
    at_dtype integer = be->default_dtype(be, 'i'), real = be->default_dtype(be, 'f');
    if (s == NULL) return integer; /* a symbol */
    if (s->kind != AT_WEAK_INT) return s->kind == AT_WEAK_BOOL ? AT_BOOL : real;
    if (ati_int_fits(integer, s)) return integer;
    at_dtype top = integer == AT_INT64 ? AT_UINT64 : AT_UINT32;
    return ati_int_fits(top, s) ? top : real;
}

static void push_VALUE(through *t, at_array a)
{
    if (at_is_nil(a) || a.be == t->be) {
        push_MAYBE(t, a);
        return;
    }
    push(t, pj_scalar(&t->f, t->be, a, dtype_for(t->be, a)));
}

static void push_SIZE(through *t, at_dim size) { push(t, pa_size(&t->f, size)); }

static void push_MAYBE_SIZE(through *t, at_dim size)
{
    bool none = at_is_nil(size.sym) && size.n == INT64_MIN;
    push(t, none ? Py_None : pa_size(&t->f, size));
}

static void push_SHAPE(through *t, const at_shape *shape) { push(t, pa_shape(&t->f, shape)); }

static void push_CUTS(through *t, at_cuts cuts)
{
    bool by_index = cuts.sections == INT64_MIN;
    push(t, by_index ? pa_sizes(&t->f, cuts.count, cuts.index) : pa_int(&t->f, cuts.sections));
}

static void push_AXIS(through *t, int axis)
{
    push(t, axis == AT_NO_AXIS ? Py_None : pa_int(&t->f, axis));
}

static void push_AXES(through *t, at_axes axes) { push(t, pa_axes(&t->f, &axes, -1)); }

static void push_FLAG(through *t, bool flag) { push(t, flag ? Py_True : Py_False); }

/* By name: hashable, and the same for every spelling. */
static void push_DTYPE(through *t, at_dtype dtype)
{
    push(t, pa_keep(&t->f, PyUnicode_InternFromString(at_dtype_name(dtype))));
}

static void push_LIST(through *t, at_list arrays)
{
    PyObject *list = pa_keep(&t->f, PyList_New(arrays.count));
    for (int i = 0; list != NULL && i < arrays.count; i++) {
        PyObject *x = arrays.array[i].p;
        if (!t->tracked) t->tracked = pj_traced(state_of(t->be), x);
        PyList_SET_ITEM(list, i, Py_NewRef(x));
    }
    push(t, list);
}

static PyObject *result_of(through *t, int op)
{
    PyObject *function = t->f.failed ? NULL : jitted(state_of(t->be), op, t->tracked);
    if (function == NULL) t->f.failed = true;
    return pa_vectorcall(&t->f, function, t->arg + 1, (size_t)t->count, NULL);
}

static at_status run(through *t, at_context *cx, int op, at_array *out)
{
    PyObject *y = result_of(t, op);
    return pa_finish(&t->f, cx, t->be, y, out);
}

/* The results of an op that has several, which JAX gives back in the list or tuple that the op has made of them. */
static at_status run_all(through *t, at_context *cx, int op, at_array *out)
{
    PyObject *all = result_of(t, op);
    for (Py_ssize_t i = 0; all != NULL && i < PySequence_Fast_GET_SIZE(all); i++)
        out[i] = (at_array){Py_NewRef(PySequence_Fast_GET_ITEM(all, i)), t->be};
    pa_close(&t->f);
    return all == NULL ? pa_foreign(cx) : AT_OK;
}

/* --- slots ---------------------------------------------------------------------------------------------------- */

#define PUSH(name, role, text, how) push_##role(&t, name);
#define THROUGH(kind, op) THROUGH_BY(run, kind, op)
#define THROUGH_BY(run, kind, op)                                                                  \
    static at_status through_##op(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),  \
                                  at_array *out)                                                   \
    {                                                                                              \
        through t = {.be = be};                                                                    \
        ATI_SIG_##kind(PUSH);                                                                      \
        return run(&t, cx, ATI_OP_##op, out);                                                      \
    }

/* A primitive is a lax call in a trace of our own, and a jitted call anywhere else. */
#define SLOT_OF_COMPOSITE_PYTHON(kind, op) THROUGH(kind, op)
#define SLOT_OF_COMPOSITE_LIBRARY(kind, op)
#define SLOT_OF_PRIMITIVE_LIBRARY(kind, op)
#define SLOT_OF_PRIMITIVE_PYTHON(kind, op)                                                         \
    THROUGH(kind, op)                                                                              \
    static at_status slot_##op(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),     \
                               at_array *out)                                                      \
    {                                                                                              \
        if (cx->flags & AT_GENERIC) return pj_lax_##op(cx, be ATI_SIG_##kind(ATI_ARG), out);       \
        return through_##op(cx, be ATI_SIG_##kind(ATI_ARG), out);                                  \
    }

#define ZEROS(...)
#define FULL(...)
#define FULL_LIKE(...)
#define ZEROS_LIKE(...)
#define ARANGE(...)
#define REPEAT_EACH(...)
#define OP(kind, op, level, rule, reach, ...) SLOT_OF_##level##_##reach(kind, op)
#define OPS(kind, op, ...) THROUGH_BY(run_all, kind, op)
#define CAST(...)
#include "anytensor/ops.def"
SLOT_OF_PRIMITIVE_PYTHON(CAST, astype) /* cast is a call of it */

/* Without a total the length depends on values: nothing to compile. */
static at_status slot_repeat(at_context *cx, const at_backend *be, at_array x, at_array repeats,
                             at_dim total_repeat_length, int axis, at_array *out)
{
    if (at_is_nil(total_repeat_length.sym) && total_repeat_length.n == INT64_MIN) return AT_DECLINE;
    return through_repeat(cx, be, x, repeats, total_repeat_length, axis, out);
}

/* No call where there is nothing to do. */
static at_status slot_clip(at_context *cx, const at_backend *be, at_array x, at_array min,
                           at_array max, at_array *out)
{
    if (!at_is_nil(min) || !at_is_nil(max)) return through_clip(cx, be, x, min, max, out);
    *out = (at_array){Py_NewRef((PyObject *)x.p), be};
    return AT_OK;
}

static at_status cast_or_keep(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                              at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    if (t != dtype) return slot_astype(cx, be, x, dtype, out);
    *out = (at_array){Py_NewRef((PyObject *)x.p), be};
    return AT_OK;
}

/* --- waking ----------------------------------------------------------------------------------------------------- */

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static void fill(at_backend *be)
{
    *be = (at_backend){
        .name = "jax",
        .traits = AT_TAKES_SYMBOLS | AT_WIDE_SUMS,
        .retain = retain,
        .release = release,
        .dtype = pj_read_dtype,
        .shape = pj_read_shape,
        .default_dtype = pj_default_dtype,
        .adopt = pj_adopt,
        .from_scalar = pj_from_scalar,
        .to_size = pj_to_size,
        .tracked = pj_tracked,
        .peek = pj_peek,
#define NAME_OF_COMPOSITE_PYTHON(op) .op = through_##op,
#define NAME_OF_COMPOSITE_LIBRARY(op)
#define NAME_OF_PRIMITIVE_LIBRARY(op) .op = pj_lax_##op,
#define NAME_OF_PRIMITIVE_PYTHON(op) .op = slot_##op,
#define ZEROS(...)
#define FULL(...)
#define FULL_LIKE(...)
#define ZEROS_LIKE(...)
#define ARANGE(...)
#define REPEAT(...)
#define REPEAT_EACH(...)
#define CAST(...)
#define CLAMP(...)
#define OP(kind, op, level, rule, reach, ...) NAME_OF_##level##_##reach(op)
#define OPS(kind, op, ...) .op = through_##op,
#include "anytensor/ops.def"
        .astype = cast_or_keep,
        .clip = slot_clip,
        .repeat = slot_repeat,
        .repeat_each = pj_repeat_each,
        .full = pj_full,
        .arange = pj_arange,
    };
}

/* A private attribute before JAX 0.4.36. */
static PyObject *name_of_committed(PyObject *jax)
{
    PyObject *array = pa_resolve(jax, "Array");
    bool is_public = array != NULL && PyObject_HasAttrString(array, "committed");
    Py_XDECREF(array);
    return PyUnicode_InternFromString(is_public ? "committed" : "_committed");
}

static int resolve(jax_state *st, PyObject *jax)
{
    static const char *const path[] = {
#define X(name, where) where,
        FUNCTIONS(X)
#undef X
    };
    if (pa_resolve_all(jax, path, FN_COUNT, st->fn) < 0) return -1;
#define X(name, made) st->constant[CONSTANT_##name] = made;
    CONSTANTS(X)
#undef X
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        const char *name = t == AT_BOOL ? "numpy.bool_" : at_dtype_name((at_dtype)t);
        char text[32];
        PyOS_snprintf(text, sizeof text, t == AT_BOOL ? "%s" : "numpy.%s", name);
        PyObject *scalar = pa_resolve(jax, text);
        st->dtype[t] = scalar == NULL ? NULL : PyObject_GetAttrString(scalar, "dtype");
        Py_XDECREF(scalar);
    }
    PyObject *functools = PyErr_Occurred() ? NULL : PyImport_ImportModule("functools");
    st->partial = functools == NULL ? NULL : PyObject_GetAttrString(functools, "partial");
    Py_XDECREF(functools);
    return PyErr_Occurred() ? -1 : 0;
}

static void free_state(jax_state *st)
{
    for (int i = 0; i < FN_COUNT; i++) Py_CLEAR(st->fn[i]);
    for (int i = 0; i < CONSTANT_COUNT; i++) Py_CLEAR(st->constant[i]);
    for (int i = 0; i < AT_OTHER; i++) Py_CLEAR(st->dtype[i]);
    for (int i = 0; i < ATI_OP_COUNT; i++) {
        Py_CLEAR(st->jitted[i][0]);
        Py_CLEAR(st->jitted[i][1]);
    }
    Py_CLEAR(st->partial);
    PyMem_Free(st);
}

static int wake(pa_state *home, at_backend *be, PyObject *jax)
{
    jax_state *st = PyMem_Calloc(1, sizeof *st);
    if (st == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    st->home = home;
    if (resolve(st, jax) < 0) {
        free_state(st);
        pa_complain(jax);
        return -1;
    }
    fill(be);
    be->state = st;
    return 0;
}

/* Whether a type derives from a class of a module that may not be there. */
static bool derives_from(const char *module, const char *name, PyTypeObject *type)
{
    PyObject *home = pa_loaded(module);
    return home != NULL && pa_derives(home, name, type);
}

/* Arrays, and what stands for them in traces; dimension expressions of exported programs are symbols. The arrays of older
 * JAX derive from nothing: jax.Array, an abstract class, only claims them. */
static int owns(PyObject *jax, PyTypeObject *type)
{
    if (pa_derives(jax, "Array", type) || pa_derives(jax, "core.Tracer", type) ||
        derives_from("jax._src.array", "ArrayImpl", type))
        return 1;
    return derives_from("jax._src.export.shape_poly", "_DimExpr", type) ? 2 : 0;
}

static int visit_state(at_backend *be, visitproc visit, void *arg)
{
    jax_state *st = be->state;
    if (st == NULL) return 0;
    for (int i = 0; i < FN_COUNT; i++) Py_VISIT(st->fn[i]);
    for (int i = 0; i < ATI_OP_COUNT; i++) {
        Py_VISIT(st->jitted[i][0]);
        Py_VISIT(st->jitted[i][1]);
    }
    return 0;
}

static void clear(at_backend *be)
{
    jax_state *st = be->state;
    be->state = NULL;
    if (st != NULL) free_state(st);
}

const pa_framework pa_jax = {
    .module = "jax",
    .oldest = "0.4.34", /* 0.4.33 is withdrawn from PyPI, 0.4.32 has no jaxlib there */
    .arrays = offsetof(pa_state, jax),
    .symbols = offsetof(pa_state, jax_symbol),
    .wake = wake,
    .owns = owns,
    .trace = pj_trace,
    .visit = visit_state,
    .clear = clear,
};
