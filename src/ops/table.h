/* The op table as data, for promotion and errors: stamped from ops.def. */
#ifndef ATI_TABLE_H
#define ATI_TABLE_H

#include "core/promote.h"

enum {
#define OP(kind, name, ...) ATI_OP_##name,
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
    ATI_OP_COUNT
};

extern const ati_op ati_ops[ATI_OP_COUNT];

#endif
