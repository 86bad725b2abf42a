/* Products of matrices. */
#ifndef ATI_MATMUL_H
#define ATI_MATMUL_H

#include "kernels/host.h"

/* x (B..., M, K), y (B..., K, N) -> out (B..., M, N), all of one dtype and with the same axes B (stretch them with
 * ati_k_broadcast()); out row-major. Integers wrap, half types add in float, bool is "or" of "and"; K of 0
 * gives zeros. Runs on several threads. */
void ati_k_matmul(const ati_host *x, const ati_host *y, ati_host *out);

#endif
