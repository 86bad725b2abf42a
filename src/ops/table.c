/* The op table as data. Only arguments that are arrays are operands; sizes, axes and flags vanish here. */
#include "ops/table.h"

/* OPERAND_<role>(what): `what` with a comma for roles that are arrays, nothing for others. */
#define OPERAND_DATA(what) what,
#define OPERAND_MAYBE(what) what,
#define OPERAND_INDEX(what) what,
#define OPERAND_MASK(what) what,
#define OPERAND_VALUE(what) what,
#define OPERAND_BOUND(what) what,
#define OPERAND_LIKE(what) what,
#define OPERAND_LIST(what) what,
#define OPERAND_SIZE(what)
#define OPERAND_MAYBE_SIZE(what)
#define OPERAND_SHAPE(what)
#define OPERAND_CUTS(what)
#define OPERAND_AXES(what)
#define OPERAND_AXIS(what)
#define OPERAND_FLAG(what)
#define OPERAND_DTYPE(what)
#define OPERAND_DEVICE(what)

#define ATI_LIST ATI_DATA /* each element of a list is a data operand */
#define ATI_BOUND ATI_VALUE
#define ROLE(name, role, text, how) OPERAND_##role(ATI_##role)
#define NAME(name, role, text, how) OPERAND_##role(#name)
#define SIZEOF(name, role, text, how) OPERAND_##role(0)
/* " && all of its operands are data" */
#define ALL_DATA(name, role, text, how) AND_##role
#define AND_DATA &&true
#define AND_MAYBE &&false
#define AND_INDEX &&false
#define AND_MASK &&false
#define AND_VALUE &&false
#define AND_BOUND &&false
#define AND_LIKE &&false
#define AND_LIST &&false
#define AND_SIZE &&true
#define AND_MAYBE_SIZE &&true
#define AND_SHAPE &&true
#define AND_CUTS &&true
#define AND_AXES &&true
#define AND_AXIS &&true
#define AND_FLAG &&true
#define AND_DTYPE &&true
#define AND_DEVICE &&true

const ati_op ati_ops[ATI_OP_COUNT] = {
#define OP(kind, op_name, level, op_rule, ...)                                                     \
    [ATI_OP_##op_name] = {.name = #op_name,                                                        \
                          .rule = ATI_##op_rule,                                                   \
                          .operands = (int)sizeof((char[]){ATI_SIG_##kind(SIZEOF)}),               \
                          .plain = true ATI_SIG_##kind(ALL_DATA),                                  \
                          .role = {ATI_SIG_##kind(ROLE)},                                          \
                          .argument = {ATI_SIG_##kind(NAME)}},
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
};
