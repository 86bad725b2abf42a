/* One rule for which backend a call belongs to and which dtype its operands take; see promote.c. */
#ifndef ATI_PROMOTE_H
#define ATI_PROMOTE_H

#include "anytensor/backend.h"

#define ATI_MAX_OPERANDS 4

typedef enum ati_role {
    ATI_DATA,
    ATI_MAYBE, /* data that may be nil */
    ATI_INDEX,
    ATI_MASK,
    ATI_VALUE, /* goes to the backend, keeps its dtype, may stay a scalar or nil */
    ATI_LIKE   /* decides the backend only */
} ati_role;

typedef enum ati_rule { ATI_KEEP, ATI_LEAD, ATI_FLOAT, ATI_WIDEN, ATI_FREE } ati_rule;

/* What promotion has to know of an op; stamped from the table in src/ops/table.c. */
typedef struct ati_op {
    const char *name;
    ati_rule rule;
    int operands;
    bool plain; /* all operands are data */
    ati_role role[ATI_MAX_OPERANDS];
    const char *argument[ATI_MAX_OPERANDS];
} ati_op;

/* Chooses the backend of a call, brings all operands to it, and checks and promotes them by role, in place.
 * Conversions belong to f. Returns the backend, or NULL once the context has failed. */
const at_backend *ati_promote(at_frame *f, const ati_op *op, at_array *const *operand);

/* The common case of data operands: arrays of one backend and one dtype, which the rule keeps, or floats and
 * scalars that the backend takes as they are. The backend, or NULL where it is not that; then ati_promote()
 * has something to do, or to say. Inline, since an elementwise call takes no longer than this check. */
static inline const at_backend *ati_settled(at_context *cx, ati_rule rule, int count,
                                            at_array *const *operands)
{
    const at_backend *be = NULL;
    at_dtype first = AT_NODTYPE;
    bool keep = rule <= ATI_LEAD || rule == ATI_FREE, weak = false;
    for (int i = 0; i < count; i++) {
        at_array a = *operands[i];
        at_dtype t = first;
        if (a.be == &at_weak) {
            weak = true;
            continue;
        }
        if (a.be == NULL || (be != NULL && a.be != be)) return NULL;
        be = a.be;
        if (rule != ATI_FREE && (count > 1 || !keep) && be->dtype(cx, a, &t) != AT_OK) return NULL;
        if (first != AT_NODTYPE && t != first) return NULL;
        first = t;
    }
    if (be == NULL || (be->traits & AT_WEAK)) return NULL;
    if ((weak || !keep) && !(first >= AT_FLOAT16 && first <= AT_FLOAT64)) return NULL;
    if (!weak) return be;
    if (!(be->traits & AT_TAKES_SCALARS)) return NULL;
    for (int i = 0; i < count; i++)
        if (operands[i]->be == &at_weak &&
            ((const at_scalar *)operands[i]->p)->range != AT_FITS_INT64)
            return NULL;
    return be;
}

/* ati_promote() for a list of data operands of one op argument, in place. */
const at_backend *ati_promote_list(at_frame *f, const ati_op *op, int count, at_array *array);

/* ati_promote() under rule KEEP for any number of operands, in place, each with a role and a name for errors; the name of
 * the call must outlive the context's error. False once the context has failed. */
bool ati_promote_by_role(at_frame *f, const char *name, int count, at_array *array,
                         const ati_role *roles, const char *const *names);

/* Arrays of one backend from a list, in place: host arrays join it, scalars become 0-d arrays of their kind's default
 * dtype, nil stays nil; dtypes are left alone. False once the context has failed. */
bool ati_align(at_frame *f, int count, at_array *array);

/* Records an error in a frame; the outermost named operation above it, or else op, speaks. */
void ati_fail(at_frame *f, const char *op, at_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The status of a slot call: AT_OK hands `out` to the frame; anything else fails the frame. */
at_array ati_result(at_frame *f, const char *op, at_status status, at_array out);

/* Puts the op's name on an error that has none. */
void ati_blame(at_frame *f, const char *op);

#endif
