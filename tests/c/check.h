/* The harness: no library, no registry, a few dozen lines.
 *
 * A test is a function whose name is a sentence. main() hands a table of them to a runner (fixture.h has one
 * for tests that need arrays); a failed check prints where and what, the test goes on, and the runner lists the
 * names of the failing tests at the end. Exit status 0 means that all passed. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static int check_failures;          /* of the test that runs */
static const char *check_note = ""; /* what a loop inside a test is at, printed with each failure */

#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)

static inline bool check_that(bool holds, const char *text, const char *file, int line)
{
    if (!holds && ++check_failures <= 20)
        printf("  %s:%d: %s%s%s\n", file, line, text, *check_note ? "  -- at " : "", check_note);
    return holds;
}

/** Equal within tolerance, relative above 1; NaN equals NaN, infinities only themselves. */
static inline bool check_near(double got, double want, double tolerance)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= tolerance * fmax(1.0, fabs(want));
}

/** Compares two arrays of doubles and prints the first difference. */
#define CHECK_EQ(got, want, count, tolerance)                                                      \
    check_equal((got), (want), (count), (tolerance), __FILE__, __LINE__)

static inline bool check_equal(const double *got, const double *want, size_t count,
                               double tolerance, const char *file, int line)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_near(got[i], want[i], tolerance)) {
            char text[96];
            snprintf(text, sizeof text, "element %zu of %zu is %.9g, not %.9g", i, count, got[i],
                     want[i]);
            return check_that(false, text, file, line);
        }
    }
    return true;
}

/** Checks that text contains every word of a NULL-terminated list. */
static inline bool check_words(const char *text, const char *const *words, const char *file,
                               int line)
{
    bool all = true;
    for (; *words; words++) {
        if (!strstr(text, *words)) {
            char note[640];
            snprintf(note, sizeof note, "\"%s\" lacks \"%s\"", text, *words);
            all = check_that(false, note, file, line);
        }
    }
    return all;
}

#endif
