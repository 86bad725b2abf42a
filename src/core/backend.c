/* The completeness check: a missing slot would be a call through NULL, much later. */
#include "anytensor/backend.h"

#define ATI_REQUIRED_PRIMITIVE true
#define ATI_REQUIRED_COMPOSITE false

at_status at_backend_check(at_context *cx, const at_backend *be)
{
    const struct {
        const char *name;
        bool there;
    } slots[] = {
        {"retain", be->retain != NULL},
        {"release", be->release != NULL},
        {"dtype", be->dtype != NULL},
        {"shape", be->shape != NULL},
        {"default_dtype", be->default_dtype != NULL},
        {"adopt", be->adopt != NULL},
        {"from_scalar", be->from_scalar != NULL},
        {"to_size", be->to_size != NULL},
#define OP(kind, name, level, ...) {#name, !ATI_REQUIRED_##level || be->name != NULL},
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i].there)
            return at_error(cx, AT_EUNSUPPORTED, "backend %s has no %s", be->name, slots[i].name);
    return AT_OK;
}
