/* The layout of DLPack's structs, as far as it is fixed: version 0 (unversioned) and 1.
 *
 * Stated here so that the library needs no foreign header; the tags of the two managed structs are DLPack's, since
 * programs pass pointers to them. Offsets are those of 64-bit platforms and checked below. */
#ifndef ATI_DLPACK_ABI_H
#define ATI_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

/* What an element is. Others (3 opaque handles, 5 complex, from 7 on floats of 8 bits and less) are none of ours. */
enum { ATI_DL_INT = 0, ATI_DL_UINT = 1, ATI_DL_FLOAT = 2, ATI_DL_BFLOAT = 4, ATI_DL_BOOL = 6 };

enum { ATI_DL_CPU = 1 };

/* Bits of DLManagedTensorVersioned.flags. */
enum { ATI_DL_READ_ONLY = 1, ATI_DL_IS_COPIED = 2 };

typedef struct ati_dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t code; /* of the element type: code, bits, lanes */
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* elements; NULL: row-major */
    uint64_t byte_offset;
} ati_dl_tensor;

struct DLManagedTensor {
    ati_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to do */
};

struct DLManagedTensorVersioned {
    uint32_t major,
        minor; /* in this place in every version to come; of another major version nothing else is */
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    ati_dl_tensor tensor;
};

_Static_assert(sizeof(void *) != 8 ||
                   (offsetof(ati_dl_tensor, ndim) == 16 && offsetof(ati_dl_tensor, lanes) == 22 &&
                    offsetof(ati_dl_tensor, shape) == 24 && sizeof(ati_dl_tensor) == 48),
               "the layout of DLTensor");
_Static_assert(sizeof(void *) != 8 || (sizeof(struct DLManagedTensor) == 64 &&
                                       offsetof(struct DLManagedTensorVersioned, tensor) == 32 &&
                                       sizeof(struct DLManagedTensorVersioned) == 80),
               "the layout of the managed structs");

#endif
