/* Makes drift between the hand-written prototypes of ops.h and the table a build error: each public
 * function must have exactly the type that its row says. */
#include "anytensor/backend.h"
#include "anytensor/ops.h"

#define OP(kind, name, ...)                                                                        \
    extern at_array (*const ati_drift_##name)(at_frame * f ATI_SIG_##kind(ATI_PARAM));             \
    at_array (*const ati_drift_##name)(at_frame * f ATI_SIG_##kind(ATI_PARAM)) = at_##name;
#define OPS(kind, name, ...)                                                                       \
    extern at_list (*const ati_drift_##name)(at_frame * f ATI_SIG_##kind(ATI_PARAM));              \
    at_list (*const ati_drift_##name)(at_frame * f ATI_SIG_##kind(ATI_PARAM)) = at_##name;
#include "anytensor/ops.def"
