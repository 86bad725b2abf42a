/* Segment sum, min, max, mean, variance, count, and extremes with a constant, against plain loops. */
#include "fuzz_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    problem p;
    cursor c;
    if (size < 1) return 0;
    fuzz_segments(&p, bytes + 1, size - 1, &c);
    oracle o = fuzz_ask(&p);
    fuzz_ask_all_ways(&o, (question)(bytes[0] % ASK_NORMALIZE), &c);
    fuzz_forget(&o);
    fuzz_free(&p);
    return 0;
}
