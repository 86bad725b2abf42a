/* See fuzz_ask.h. */
#include "fuzz_ask.h"

static void ask_selection(const oracle *o, question q, selection s, bool sorted, const char *how)
{
    session at;
    at_frame *f = fuzz_open(&at, o->p->flags);
    at_array x = fuzz_array(f, &s.x), ids = fuzz_array(f, &s.ids);
    fuzz_check(o, q, f, fuzz_call(f, q, x, ids, o->p->n, sorted), s.rows, s.row, how);
    fuzz_close(&at);
    fuzz_unselect(&s);
}

static void ask_as_it_stands(const oracle *o, question q)
{
    const problem *p = o->p;
    session at;
    at_frame *f = fuzz_open(&at, p->flags);
    at_array x = fuzz_array(f, &p->x), ids = fuzz_array(f, &p->ids);
    fuzz_check(o, q, f, fuzz_call(f, q, x, ids, p->n, false), p->rows, NULL, "as it stands");
    at_array again = fuzz_call(f, q, x, ids, p->n, true);
    if (fuzz_ids_ascend(p)) {
        fuzz_check(o, q, f, again, p->rows, NULL, "sorted as it stands");
    } else {
        at_clear(f->cx); /* the promise was broken */
    }
    fuzz_close(&at);
    if (at_native_live() != 0) fuzz_fail(p, "%d arrays are left", (int)at_native_live());
}

void fuzz_ask_all_ways(const oracle *o, question q, cursor *c)
{
    const problem *p = o->p;
    int64_t kept, *row = fuzz_kept(p, &kept);
    ask_as_it_stands(o, q);
    ask_selection(o, q, fuzz_select(p, kept, row), false, "without dropped rows");
    ask_selection(o, q, fuzz_select(p, p->rows, fuzz_shuffled(p, c)), false, "shuffled");
    ask_selection(o, q, fuzz_select(p, p->rows, fuzz_by_id(p)), true, "sorted");
}
