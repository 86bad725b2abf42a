/* Which backend a call belongs to, and which dtype its operands take.
 *
 * 1. Scalars ask for nothing; host arrays (AT_JOINS) join; the one other framework decides. Two are an
 *    error that names both. Nothing but scalars: the context's home.
 * 2. Host arrays move to that backend.
 * 3. Index operands must be integral; masks become bool.
 * 4. Data operands get their common dtype under the op's rule; scalars become 0-d arrays of it.
 * The common case, arrays of one backend and one dtype, is decided without a conversion. */
#include <stdarg.h>
#include <stdio.h>

#include "anytensor/ops.h"
#include "core/dtype.h"
#include "core/places.h"
#include "core/promote.h"

void ati_blame(at_frame *f, const char *op)
{
    if (f->cx->status == AT_OK || f->cx->op != NULL) return;
    for (const at_frame *g = f; g != NULL; g = g->up)
        if (g->op != NULL) op = g->op;
    f->cx->op = op;
}

void ati_fail(at_frame *f, const char *op, at_status status, const char *format, ...)
{
    char text[AT_MESSAGE_SIZE];
    if (at_failed(f)) return; /* the first error keeps its text and its op */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    at_error(f->cx, status, "%s", text);
    ati_blame(f, op);
}

at_array ati_result(at_frame *f, const char *op, at_status status, at_array out)
{
    if (status == AT_OK) return ati_keep(f, out);
    if (status == AT_DECLINE)
        status = AT_EUNSUPPORTED; /* from a primitive there is nothing to fall back on */
    at_error(f->cx, status, "failed");
    ati_blame(f, op);
    return AT_NIL;
}

/* --- 1. the backend ------------------------------------------------------------------------------- */

typedef struct call {
    at_frame *f;
    const ati_op *op;
    int count;
    at_array *const *operand; /* one per argument of the op, or else */
    at_array *list;           /* the elements of its one list argument */
    const ati_role *roles;    /* of the list, one each, and their names; NULL: all are data */
    const char *const *names;
    const at_backend *be;
    at_array like; /* the operand that decided */
} call;

static at_array *operand(const call *c, int i) { return c->list ? &c->list[i] : c->operand[i]; }

static ati_role role(const call *c, int i)
{
    if (c->roles != NULL) return c->roles[i];
    return c->list ? ATI_DATA : c->op->role[i];
}

static const char *argument(const call *c, int i)
{
    return c->names != NULL ? c->names[i] : c->op->argument[c->list ? 0 : i];
}

static bool is_weak(at_array a) { return a.be != NULL && (a.be->traits & AT_WEAK); }

/* Takes one operand into account; false when it belongs to a second framework. */
static bool consider(call *c, at_array a)
{
    if (a.be == NULL || a.be == c->be || (a.be->traits & AT_WEAK)) return true;
    bool joins = a.be->traits & AT_JOINS;
    if (c->be == NULL || ((c->be->traits & AT_JOINS) && !joins)) {
        c->be = a.be;
        c->like = a;
        return true;
    }
    return joins;
}

static bool choose(call *c)
{
    for (int i = 0; i < c->count; i++) {
        if (!consider(c, *operand(c, i))) {
            ati_fail(c->f, c->op->name, AT_EBACKEND,
                     "argument '%s' is an array of %s beside arrays of %s; one call takes one "
                     "framework (and NumPy)",
                     argument(c, i), operand(c, i)->be->name, c->be->name);
            return false;
        }
    }
    if (c->be == NULL) c->be = c->f->cx->home;
    return true;
}

/* --- 2. host arrays join --------------------------------------------------------------------------- */

static bool join(call *c)
{
    for (int i = 0; i < c->count; i++) {
        at_array a = *operand(c, i);
        if (a.be == NULL || a.be == c->be || is_weak(a)) continue;
        at_array out = AT_NIL;
        at_status status = c->be->adopt(c->f->cx, c->be, a, c->like, &out);
        *operand(c, i) = ati_result(c->f, c->op->name, status, out);
        if (at_failed(c->f)) return false;
    }
    return true;
}

/* --- 3. single operands ---------------------------------------------------------------------------- */

static const at_shape scalar_shape = {.ndim = 0};

/* An op takes what from_scalar makes; a caller who gets the operands back wants an array like any other. */
static at_array scalar(call *c, at_array a, at_dtype dtype)
{
    at_array out = AT_NIL;
    bool whole = c->roles != NULL && !(c->be->traits & AT_JOINS);
    at_status status = whole ? c->be->full(c->f->cx, c->be, &scalar_shape, a, dtype, c->like, &out)
                             : c->be->from_scalar(c->f->cx, c->be, a, dtype, c->like, &out);
    return ati_result(c->f, c->op->name, status, out);
}

static at_array cast(call *c, at_array a, at_dtype dtype)
{
    at_array out = AT_NIL;
    at_status status = c->be->astype(c->f->cx, c->be, a, dtype, &out);
    return ati_result(c->f, c->op->name, status, out);
}

static at_array index_operand(call *c, int i, at_array a, at_dtype t)
{
    if (!ati_is_integer(t)) {
        ati_fail(c->f, c->op->name, AT_EDTYPE,
                 "argument '%s' is kind='index' and must be integral, found %s", argument(c, i),
                 at_dtype_name(t));
        return AT_NIL;
    }
    if (a.be == &at_weak && !ati_int_fits(AT_INT64, a.p)) {
        ati_fail(c->f, c->op->name, AT_EINDEX, "argument '%s': index %.17g is out of range",
                 argument(c, i), ((const at_scalar *)a.p)->d);
        return AT_NIL;
    }
    return is_weak(a) ? scalar(c, a, c->be->default_dtype(c->be, 'i')) : a;
}

static at_array mask_operand(call *c, at_array a, at_dtype t)
{
    if (is_weak(a)) return scalar(c, a, AT_BOOL);
    return t == AT_BOOL ? a : cast(c, a, AT_BOOL);
}

/* Index and mask operands; also sees that nothing required is nil. */
static bool settle_single(call *c)
{
    for (int i = 0; i < c->count; i++) {
        at_array *a = operand(c, i);
        ati_role r = role(c, i);
        if (r == ATI_MAYBE || r == ATI_VALUE || r == ATI_LIKE) continue;
        if (a->be == NULL) {
            ati_fail(c->f, c->op->name, AT_EARG, "argument '%s' is missing", argument(c, i));
            return false;
        }
        if (r == ATI_DATA) continue;
        at_dtype t;
        if (at_dtype_of(c->f, *a, &t) == AT_OK)
            *a = r == ATI_INDEX ? index_operand(c, i, *a, t) : mask_operand(c, *a, t);
        if (at_failed(c->f)) {
            ati_blame(c->f, c->op->name);
            return false;
        }
    }
    return true;
}

/* --- 4. data operands ------------------------------------------------------------------------------ */

/* What the data operands are together. */
typedef struct mix {
    at_dtype strong; /* common dtype of the arrays, AT_NODTYPE without any */
    at_dtype lead;   /* of the first operand, if it is an array */
    at_dtype real;   /* of the floating ones alone: it wins over all integers, in any order */
    int weak;        /* greatest at_scalar_kind among the scalars, -1 without any */
    bool uniform;    /* all arrays have the dtype `strong` */
    bool other;      /* some array has a dtype that the library does not know */
} mix;

static bool is_data(const call *c, int i)
{
    return (role(c, i) == ATI_DATA || role(c, i) == ATI_MAYBE) && operand(c, i)->be != NULL;
}

static void mix_in(call *c, mix *m, at_array a, at_dtype t)
{
    if (is_weak(a)) {
        int kind = t == AT_BOOL ? AT_WEAK_BOOL : t == AT_INT64 ? AT_WEAK_INT : AT_WEAK_FLOAT;
        m->weak = kind > m->weak ? kind : m->weak;
    } else if (t == AT_OTHER) {
        m->other = true;
    } else if (m->strong == AT_NODTYPE) {
        m->strong = t;
    } else if (t != m->strong) {
        m->uniform = false;
        m->strong = ati_dtype_promote(m->strong, t, c->be->default_dtype(c->be, 'f'));
    }
    if (!is_weak(a) && ati_is_float(t))
        m->real = m->real == AT_NODTYPE ? t : ati_dtype_promote(m->real, t, t);
}

/* The common dtype under the op's rule. */
static at_dtype common(const call *c, const mix *m)
{
    at_dtype t = m->real != AT_NODTYPE ? m->real : m->strong;
    const at_backend *be = c->be;
    bool leads = c->op->rule == ATI_LEAD && m->weak < AT_WEAK_FLOAT && ati_is_integer(m->lead);
    if (leads && m->real == AT_NODTYPE) return m->lead;
    if (c->op->rule == ATI_LEAD && ati_is_float(m->lead)) return m->lead;
    if (m->weak == AT_WEAK_BOOL && t == AT_NODTYPE) t = AT_BOOL;
    if (m->weak == AT_WEAK_INT && (t == AT_NODTYPE || t == AT_BOOL)) t = be->default_dtype(be, 'i');
    if ((m->weak == AT_WEAK_FLOAT || c->op->rule == ATI_FLOAT) && !ati_is_float(t))
        t = be->default_dtype(be, 'f');
    if (c->op->rule == ATI_WIDEN && (t == AT_BOOL || ati_is_integer(t))) {
        at_dtype wide = be->default_dtype(be, 'i');
        t = t == AT_BOOL || at_dtype_size(t) < at_dtype_size(wide) ? wide : t;
    }
    return t;
}

static bool scalar_fits(call *c, int i, at_dtype t)
{
    at_array a = *operand(c, i);
    const at_scalar *s = a.be == &at_weak ? a.p : NULL;
    if (s == NULL || s->kind != AT_WEAK_INT || !ati_is_integer(t) || ati_int_fits(t, s))
        return true;
    ati_fail(c->f, c->op->name, AT_EOVERFLOW,
             "argument '%s': the Python integer %.17g is out of bounds for %s", argument(c, i),
             s->d, at_dtype_name(t));
    return false;
}

/* Scalars to arrays; integers are looked at first. A symbol, and an integer beyond int64, become arrays on every
 * backend. */
static bool settle_scalar(call *c, int i, at_dtype t, bool may_stay)
{
    at_array *a = operand(c, i);
    if (!scalar_fits(c, i, t)) return false;
    const at_scalar *s = a->be == &at_weak ? a->p : NULL;
    if (may_stay && s != NULL && s->range == AT_FITS_INT64) return true;
    *a = scalar(c, *a, t);
    return !at_failed(c->f);
}

static bool refuse_other(call *c)
{
    ati_fail(c->f, c->op->name, AT_EDTYPE,
             "expected arrays of bool, integer or floating dtype beside a scalar, found a dtype of "
             "%s's own",
             c->be->name);
    return false;
}

static bool gather(call *c, mix *m)
{
    for (int i = 0; i < c->count; i++) {
        at_dtype t;
        if (!is_data(c, i)) continue;
        if (at_dtype_of(c->f, *operand(c, i), &t) != AT_OK) {
            ati_blame(c->f, c->op->name);
            return false;
        }
        mix_in(c, m, *operand(c, i), t);
        if (i == 0 && !is_weak(*operand(c, i))) m->lead = t;
    }
    return true;
}

/* Another operand in the dtype of the one that leads. An integer beyond its range becomes the end of that. */
static at_array led(call *c, at_array a, at_dtype t)
{
    at_dtype own = AT_NODTYPE;
    at_scalar low = {0}, high = {0};
    if (at_dtype_of(c->f, a, &own) == AT_OK && ati_is_integer(own) && ati_is_integer(t)) {
        low = ati_int_end(t, true);
        high = ati_int_end(t, false);
        if (ati_int_fits(own, &low)) a = at_maximum(c->f, a, (at_array){&low, &at_weak});
        if (ati_int_fits(own, &high)) a = at_minimum(c->f, a, (at_array){&high, &at_weak});
    }
    return at_failed(c->f) ? AT_NIL : cast(c, a, t);
}

/* Of three operands the first is a scalar: beside another one, in the first step of a formula, both would take the
 * default dtype, whatever the third is (clip(0, 0, int8)). */
static bool scalars_meet(const call *c)
{
    return c->count > 2 && role(c, 0) == ATI_DATA && is_weak(*operand(c, 0));
}

static bool settle_data(call *c)
{
    mix m = {AT_NODTYPE, AT_NODTYPE, AT_NODTYPE, -1, true, false};
    if (!gather(c, &m)) return false;
    if (m.other) return m.weak < 0 || refuse_other(c);
    at_dtype t = common(c, &m);
    bool arrays_fit = m.uniform && t == m.strong;
    if (arrays_fit && m.weak < 0) return true;
    bool may_stay = (c->be->traits & AT_TAKES_SCALARS) && m.strong != AT_NODTYPE &&
                    c->list == NULL && !scalars_meet(c);
    for (int i = 0; i < c->count; i++) {
        at_array *a = operand(c, i);
        if (!is_data(c, i)) continue;
        if (is_weak(*a)) {
            if (!settle_scalar(c, i, t, may_stay)) return false;
        } else if (!arrays_fit) {
            *a = c->op->rule == ATI_LEAD ? led(c, *a, t) : cast(c, *a, t);
        }
    }
    return !at_failed(c->f);
}

/* A rule FREE op (or one with a single array that is kept as it is) needs no dtype; scalars do. */
static bool needs_dtypes(const call *c)
{
    int strong = 0;
    for (int i = 0; i < c->count; i++) {
        if (!is_data(c, i)) continue;
        if (is_weak(*operand(c, i))) return true;
        strong++;
    }
    return strong > 0 && c->op->rule != ATI_FREE && (strong > 1 || c->op->rule > ATI_LEAD);
}

static const at_backend *settle(call *c)
{
    if (!choose(c) || !join(c) || !settle_single(c)) return NULL;
    if (needs_dtypes(c) && !settle_data(c)) return NULL;
    return c->be;
}

const at_backend *ati_promote(at_frame *f, const ati_op *op, at_array *const *operands)
{
    if (at_failed(f)) return NULL;
    const at_backend *be = op->plain ? ati_settled(f->cx, op->rule, op->operands, operands) : NULL;
    if (be != NULL) return be;
    call c = {.f = f, .op = op, .count = op->operands, .operand = operands};
    return settle(&c);
}

const at_backend *ati_promote_list(at_frame *f, const ati_op *op, int count, at_array *array)
{
    if (at_failed(f)) return NULL;
    call c = {.f = f, .op = op, .count = count, .list = array};
    return settle(&c);
}

bool ati_promote_by_role(at_frame *f, const char *name, int count, at_array *array,
                         const ati_role *roles, const char *const *names)
{
    if (at_failed(f)) return false;
    const ati_op op = {.name = name, .rule = ATI_KEEP};
    call c = {.f = f, .op = &op, .count = count, .list = array, .roles = roles, .names = names};
    return settle(&c) != NULL;
}

static const ati_op align = {.name = "align_arrays", .operands = 1, .argument = {"arrays"}};

bool ati_align(at_frame *f, int count, at_array *array)
{
    if (at_failed(f)) return false;
    call c = {.f = f, .op = &align, .count = count, .list = array};
    if (!choose(&c) || !join(&c)) return false;
    for (int i = 0; i < count; i++) {
        if (!is_weak(array[i])) continue;
        at_dtype t;
        if (at_dtype_of(f, array[i], &t) != AT_OK) return false;
        if (t != AT_BOOL) t = c.be->default_dtype(c.be, t == AT_INT64 ? 'i' : 'f');
        if (!scalar_fits(&c, i, t)) return false;
        at_array out = AT_NIL;
        at_status status = c.be->full(f->cx, c.be, &scalar_shape, array[i], t, c.like, &out);
        array[i] = ati_result(f, align.name, status, out);
    }
    return !at_failed(f);
}
