/* Asks one question in every way that must give the same answer. */
#ifndef FUZZ_ASK_H
#define FUZZ_ASK_H

#include "fuzz_oracle.h"

/* As it stands in memory; shuffled; sorted, with the promise; without dropped rows; and with the promise broken, when
 * only memory must stay whole. */
void fuzz_ask_all_ways(const oracle *o, question q, cursor *c);

#endif
