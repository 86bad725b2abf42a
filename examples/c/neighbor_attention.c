/* Attention over neighbours on a small fixed graph, in C alone.
 *
 * Every edge carries a message from its sender to its receiver. Its weight is a softmax, over all edges into the
 * same receiver, of a score of the two nodes; each node adds up the weighted features of its neighbours. The
 * same five lines, written with anytensor's Python package, run on NumPy, PyTorch and the others.
 *
 * Prints the result beside a plain loop over edges, and exits with status 1 if they differ. */
#include <anytensor.h>

#include <math.h>
#include <stdio.h>

enum { NODES = 5, EDGES = 8, FEATURES = 3 };

/* Node 4 receives nothing. */
static const int32_t senders[EDGES] = {0, 1, 2, 3, 0, 4, 2, 1};
static const int32_t receivers[EDGES] = {1, 0, 0, 0, 2, 2, 3, 3};

static const float features[NODES][FEATURES] = {{0.5F, -1.0F, 2.0F},
                                                {1.5F, 0.25F, -0.5F},
                                                {-1.0F, 3.0F, 0.0F},
                                                {2.0F, 1.0F, 1.0F},
                                                {0.0F, -2.0F, 0.75F}};

/* How much a node counts as a sender, and as a receiver. */
static const float send_score[NODES] = {0.2F, -1.5F, 0.7F, 1.1F, -0.3F};
static const float receive_score[NODES] = {0.1F, 0.4F, -0.9F, 0.0F, 2.0F};

static const double slope = 0.2; /* of the leaky relu below 0 */

/* --- with the library ------------------------------------------------------------------------ */

/* x where it is positive, a fraction of it elsewhere. */
static at_array leaky_relu(at_frame *f, at_array x)
{
    at_scalar factor;
    at_array small = at_mul(f, x, at_scalar_float(&factor, slope));
    return at_maximum(f, x, small);
}

/* weights (EDGES) as a column (EDGES, 1), to be multiplied with rows. */
static at_array column(at_frame *f, at_array weights)
{
    const at_shape shape = {.ndim = 2, .dim = {{.n = -1}, {.n = 1}}};
    return at_reshape(f, weights, &shape);
}

static at_array attention(at_frame *up, at_array x, at_array send, at_array receive, at_array from,
                          at_array to)
{
    at_frame frame, *f = at_enter(&frame, up);
    at_array sent = at_take(f, send, from, 0);
    at_array received = at_take(f, receive, to, 0);
    at_array scores = leaky_relu(f, at_add(f, sent, received));
    at_array weights = at_segment_softmax(f, scores, to, AT_DIM(NODES), false);
    at_array rows = at_take(f, x, from, 0);
    at_array messages = at_mul(f, rows, column(f, weights));
    return at_leave(f, at_segment_sum(f, messages, to, AT_DIM(NODES), false));
}

/* Runs the above and reads the result; false, with a message, where anything failed. */
static bool compute(float out[NODES][FEATURES])
{
    at_context cx;
    at_frame root, *f = at_open(&root, at_context_init(&cx, at_native()));

    const int64_t table[] = {NODES, FEATURES}, nodes[] = {NODES}, edges[] = {EDGES};
    at_array x = at_native_copy(f, AT_FLOAT32, 2, table, features);
    at_array send = at_native_copy(f, AT_FLOAT32, 1, nodes, send_score);
    at_array receive = at_native_copy(f, AT_FLOAT32, 1, nodes, receive_score);
    at_array from = at_native_copy(f, AT_INT32, 1, edges, senders);
    at_array to = at_native_copy(f, AT_INT32, 1, edges, receivers);
    at_array y = attention(f, x, send, receive, from, to);

    bool done = !at_failed(f) && at_native_read(y, out, sizeof(float[NODES][FEATURES]));
    if (!done) fprintf(stderr, "%s\n", at_message(&cx));
    at_close(f);
    return done;
}

/* --- without it ------------------------------------------------------------------------------ */

static double score_of(int edge)
{
    double s = (double)send_score[senders[edge]] + (double)receive_score[receivers[edge]];
    return s > 0 ? s : slope * s;
}

static void compute_plainly(double out[NODES][FEATURES])
{
    double total[NODES] = {0};
    for (int e = 0; e < EDGES; e++) total[receivers[e]] += exp(score_of(e));
    for (int n = 0; n < NODES; n++)
        for (int k = 0; k < FEATURES; k++) out[n][k] = 0;
    for (int e = 0; e < EDGES; e++) {
        double weight = exp(score_of(e)) / total[receivers[e]];
        for (int k = 0; k < FEATURES; k++)
            out[receivers[e]][k] += weight * (double)features[senders[e]][k];
    }
}

int main(void)
{
    float got[NODES][FEATURES];
    double want[NODES][FEATURES], worst = 0;
    if (!compute(got)) return 1;
    compute_plainly(want);

    printf("node   attention over its neighbours   plain loop\n");
    for (int n = 0; n < NODES; n++) {
        printf("%4d ", n);
        for (int k = 0; k < FEATURES; k++) printf(" %8.5f", (double)got[n][k]);
        printf("   ");
        for (int k = 0; k < FEATURES; k++) {
            printf(" %8.5f", want[n][k]);
            worst = fmax(worst, fabs((double)got[n][k] - want[n][k]));
        }
        printf("\n");
    }
    bool right = worst < 1e-6 && at_native_live() == 0;
    printf("largest difference %.2g: %s\n", worst, right ? "right" : "WRONG");
    return right ? 0 : 1;
}
