/* calibrate/fit/fit_steps.c - which factors the measured steps tell, and their least squares. Output: fit_steps_write.c. */
#include "calibrate/fit/fit_steps.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/squares.h"

#define STEP      0.03 /* of the derivatives, in the logarithm: wide enough for picoseconds and NCCL's switches */
#define TELL_FRAC 0.15 /* a factor is told when its standard deviation is below this */
#define BELIEF_FRAC                                                                                          \
    0.5 /* and is believed to lie within such a factor e^+-0.5 of 1 before anything was measured */
#define FIRST_NOISE  0.03 /* of a published step time, until the rows say better */
#define LEAST_NOISE  0.005
#define ROBUST_FRAC  0.05
#define ITERATIONS   30
#define SETTLED_FRAC 1e-4
#define FOLDS        6 /* above twice as many rows; below, each row alone */
#define ALIKE        0.9

/* What a scenario was last predicted to take, and under which factors: rows that repeat it need not run it again. */
typedef struct Last {
    int first; /* row of the same scenario, the row itself at the earliest */
    int count; /* knobs; -1: not predicted yet */
    int knobs[CAL_MAX_KNOBS];
    double logs[CAL_MAX_KNOBS], predicted_s;
} Last;

typedef struct Bench {
    const GPtrArray *steps; /* CalStep* */
    CalPredictStep predict;
    void *data;
    CalKnob knobs[CAL_MAX_KNOBS];
    int count;
    double *jacobian; /* at factors of 1: [knob * steps + step] */
    double *before;   /* log(predicted / measured) there */
    Spec *turned;
    Last *last;    /* a row each */
    GError *error; /* the first failure of a prediction */
} Bench;

/* A fit of some knobs to some rows. */
typedef struct Part {
    Bench *bench;
    const int *rows;
    int row_count;
    int knobs[CAL_MAX_KNOBS], knob_count;
} Part;

static const CalStep *step_at(const Bench *bench, int i)
{
    return g_ptr_array_index(bench->steps, (guint)i);
}

static bool is_last(const Last *last, const int *knobs, int count, const double *logs)
{
    return last->count == count &&
           (count == 0 || (memcmp(last->knobs, knobs, sizeof *knobs * (size_t)count) == 0 &&
                           memcmp(last->logs, logs, sizeof *logs * (size_t)count) == 0));
}

/* 0: cannot be predicted. */
static double predict_row(Bench *bench, int row, const int *knobs, int count, const double *logs)
{
    Last *last = &bench->last[bench->last[row].first];
    if (is_last(last, knobs, count, logs))
        return last->predicted_s;
    double predicted_s = 0;
    *bench->turned = step_at(bench, row)->spec;
    for (int j = 0; j < count; j++)
        cal_knob_turn(&bench->knobs[knobs[j]], exp(logs[j]), bench->turned);
    if (bench->error != NULL || !bench->predict(bench->turned, bench->data, &predicted_s, &bench->error))
        return 0;
    last->count = count;
    last->predicted_s = predicted_s;
    for (int j = 0; j < count; j++) {
        last->knobs[j] = knobs[j];
        last->logs[j] = logs[j];
    }
    return predicted_s;
}

static void find_repeated(Bench *bench)
{
    for (int i = 0; i < (int)bench->steps->len; i++) {
        int first = 0;
        while (first < i &&
               (bench->last[first].first != first ||
                memcmp(&step_at(bench, first)->spec, &step_at(bench, i)->spec, sizeof(Spec)) != 0))
            first++;
        bench->last[i] = (Last){.first = first, .count = -1};
    }
}

static double residual_of(Bench *bench, int row, const int *knobs, int count, const double *logs)
{
    const double predicted_s = predict_row(bench, row, knobs, count, logs);
    return predicted_s > 0 ? log(predicted_s / step_at(bench, row)->measured_s) : 0;
}

static void residuals(void *context, const double *logs, double *out)
{
    const Part *part = context;
    for (int i = 0; i < part->row_count; i++)
        out[i] = residual_of(part->bench, part->rows[i], part->knobs, part->knob_count, logs);
}

/* --- which factors are told --- */

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The column of a knob, over the rows of the part. */
static void column_of(const Part *part, int knob, double *out)
{
    const Bench *bench = part->bench;
    for (int i = 0; i < part->row_count; i++)
        out[i] = bench->jacobian[(guint)knob * bench->steps->len + (guint)part->rows[i]];
}

static void say_why(const Part *part, int knob, double noise, CalKnobFit *fit)
{
    const int n = part->row_count;
    g_autofree double *own = g_new(double, (gsize)n), *other = g_new(double, (gsize)n);
    char name[96];
    column_of(part, knob, own);
    const double size = sqrt(dot(own, own, n));
    double largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(own[i]));
    if (noise > TELL_FRAC * size) {
        g_snprintf(
            fit->why, sizeof fit->why,
            "too little felt: 10 %% more moves the most sensitive step by %.2f %%, the noise is %.1f %%",
            100 * largest * log(1.1), 100 * noise);
        return;
    }
    for (int j = 0; j < part->knob_count; j++) {
        column_of(part, part->knobs[j], other);
        const double alike = fabs(dot(own, other, n)) / (size * sqrt(dot(other, other, n)));
        cal_knob_name(&part->bench->knobs[part->knobs[j]], name, sizeof name);
        if (alike >= ALIKE) {
            g_snprintf(fit->why, sizeof fit->why,
                       "cannot be told apart from %s: these rows feel both alike (correlation %.2f)", name,
                       alike);
            return;
        }
    }
    g_snprintf(fit->why, sizeof fit->why, "cannot be told apart from the others together with these %d rows",
               n);
}

/* Pivoted orthogonalisation of the derivatives: the knob that the rows feel most beyond those taken already comes
 * next, as long as the noise leaves it determined. At most one for every two rows. */
static void choose(Part *part, double noise, CalKnobFit *fits)
{
    const int n = part->row_count, count = part->bench->count;
    g_autofree double *columns = g_new(double, (gsize)(n * count));
    part->knob_count = 0;
    for (int k = 0; k < count; k++) {
        fits[k] = (CalKnobFit){.knob = part->bench->knobs[k], .factor = 1};
        column_of(part, k, columns + k * n);
    }
    while (part->knob_count < n / 2) {
        int best = -1;
        double size = 0;
        for (int k = 0; k < count; k++)
            if (!fits[k].fitted && sqrt(dot(columns + k * n, columns + k * n, n)) > size) {
                size = sqrt(dot(columns + k * n, columns + k * n, n));
                best = k;
            }
        if (best < 0 || noise > TELL_FRAC * size)
            break;
        fits[best].fitted = true;
        part->knobs[part->knob_count++] = best;
        for (int k = 0; k < count; k++) {
            const double share = dot(columns + k * n, columns + best * n, n) / (size * size);
            for (int i = 0; k != best && i < n; i++)
                columns[k * n + i] -= share * columns[best * n + i];
        }
    }
    for (int k = 0; k < count; k++)
        if (!fits[k].fitted)
            say_why(part, k, noise, &fits[k]);
}

/* --- the fit --- */

/* A normal deviation from the median of |residual|, for the parameters that were spent. */
static double noise_of(const double *residual, int n, int spent)
{
    g_autofree double *sorted = g_new(double, (gsize)n);
    for (int i = 0; i < n; i++)
        sorted[i] = fabs(residual[i]);
    orr_stats_sort(sorted, (size_t)n);
    const double median = orr_stats_quantile(sorted, (size_t)n, 0.5);
    return fmax(LEAST_NOISE, 1.4826 * median * sqrt((double)n / MAX(n - spent, 1)));
}

static CalSquares problem_of(Part *part, double noise)
{
    return (CalSquares){.residuals = residuals,
                        .context = part,
                        .rows = part->row_count,
                        .count = part->knob_count,
                        .loss_scale = ROBUST_FRAC,
                        .prior = noise / BELIEF_FRAC,
                        .step = STEP,
                        .iterations = ITERATIONS,
                        .settled_frac = SETTLED_FRAC};
}

/* Standard deviations at the solution: the root of the diagonal of (J'J/noise^2 + 1/belief^2)^-1. */
static void deviations(Part *part, const CalSquares *problem, const double *logs, const double *residual,
                       double noise, CalKnobFit *fits)
{
    const int n = part->row_count, count = part->knob_count;
    g_autofree double *jacobian = g_new(double, (gsize)(n * MAX(count, 1)));
    cal_squares_jacobian(problem, logs, residual, jacobian);
    for (int j = 0; j < count; j++) {
        double matrix[CAL_MAX_SQUARES][CAL_MAX_SQUARES] = {{0}}, unit[CAL_MAX_SQUARES] = {0};
        for (int r = 0; r < count; r++)
            for (int c = 0; c < count; c++)
                matrix[r][c] = dot(jacobian + r * n, jacobian + c * n, n) / (noise * noise) +
                               (r == c ? 1 / (BELIEF_FRAC * BELIEF_FRAC) : 0);
        unit[j] = 1;
        cal_squares_linear(count, matrix, unit);
        fits[part->knobs[j]].std_frac = sqrt(unit[j]);
    }
}

/* Twice: with the usual noise, then with what the first fit left over. */
static void fit_rows(Bench *bench, const int *rows, int row_count, CalKnobFit *fits, double *ret_noise)
{
    Part part = {.bench = bench, .rows = rows, .row_count = row_count};
    g_autofree double *residual = g_new(double, (gsize)row_count);
    double logs[CAL_MAX_SQUARES] = {0}, noise = FIRST_NOISE;
    for (int round = 0; round < 2; round++) {
        choose(&part, noise, fits);
        const CalSquares problem = problem_of(&part, noise);
        cal_squares_solve(&problem, logs);
        residuals(&part, logs, residual);
        noise = noise_of(residual, row_count, part.knob_count);
        deviations(&part, &problem, logs, residual, noise, fits);
    }
    for (int j = 0; j < part.knob_count; j++)
        fits[part.knobs[j]].factor = exp(logs[j]);
    *ret_noise = noise;
}

/* log(predicted / measured) of a row under a fit. */
static double residual_under(Bench *bench, int row, const CalKnobFit *fits)
{
    int knobs[CAL_MAX_KNOBS], count = 0;
    double logs[CAL_MAX_KNOBS];
    for (int k = 0; k < bench->count; k++)
        if (fits[k].fitted) {
            logs[count] = log(fits[k].factor);
            knobs[count++] = k;
        }
    return residual_of(bench, row, knobs, count, logs);
}

static CalErrors errors_of(const double *residual, int n)
{
    CalErrors errors = {0};
    g_autofree double *values = g_new(double, (gsize)n);
    for (int i = 0; i < n; i++) {
        values[i] = expm1(residual[i]);
        errors.mean_frac += fabs(values[i]) / n;
    }
    cal_error_summary(values, n, &errors.median_frac, &errors.p90_frac, &errors.bias_frac);
    return errors;
}

/* Each row predicted by a fit that has not seen it: its choice of factors included. */
static void cross_validate(Bench *bench, int folds, double *residual)
{
    const int n = (int)bench->steps->len;
    g_autofree int *seen = g_new(int, (gsize)n);
    for (int fold = 0; fold < folds; fold++) {
        CalKnobFit fits[CAL_MAX_KNOBS];
        double noise;
        int count = 0;
        for (int i = 0; i < n; i++)
            if (i % folds != fold)
                seen[count++] = i;
        fit_rows(bench, seen, count, fits, &noise);
        for (int i = fold; i < n; i += folds)
            residual[i] = residual_under(bench, i, fits);
    }
}

/* --- rows that go together --- */

static bool check_steps(const GPtrArray *steps, GError **error)
{
    if (steps->len < CAL_LEAST_STEPS)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%u measured steps are too few to tell a factor and check it; give %d or more, of "
            "different sizes, or correct single runs by them: orrery run SCENARIO --own-runs FILE",
            steps->len, CAL_LEAST_STEPS);
    const CalStep *first = g_ptr_array_index(steps, 0);
    const SpecCollectiveModel links = cal_effective_collectives(&first->spec.cluster);
    for (guint i = 1; i < steps->len; i++) {
        const CalStep *step = g_ptr_array_index(steps, i);
        const SpecCollectiveModel own = cal_effective_collectives(&step->spec.cluster);
        if (strcmp(step->spec.cluster.accelerator.name, first->spec.cluster.accelerator.name) != 0)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "rows of %s and %s: one profile is of one accelerator; choose one with "
                            "--accelerator NAME",
                            first->spec.cluster.accelerator.name, step->spec.cluster.accelerator.name);
        if (memcmp(&own, &links, sizeof own) != 0)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "\"%s\" and \"%s\" ran on clusters with different \"collectives\"; fit them apart", first->id,
                step->id);
    }
    return true;
}

static void list_knobs(Bench *bench)
{
    static const CalKnobKind links[] = {CAL_KNOB_COMPUTE, CAL_KNOB_MEMORY, CAL_KNOB_SCALE_UP,
                                        CAL_KNOB_SCALE_OUT, CAL_KNOB_LATENCY};
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++)
        bench->knobs[bench->count++] = (CalKnob){.kind = links[i]};
    for (guint i = 0; i < bench->steps->len; i++) {
        CalKnob knob = {.kind = CAL_KNOB_HOST};
        bool known = false;
        g_strlcpy(knob.framework, step_at(bench, (int)i)->spec.execution.framework.name,
                  sizeof knob.framework);
        for (int k = 0; k < bench->count; k++)
            known |= bench->knobs[k].kind == CAL_KNOB_HOST &&
                     strcmp(bench->knobs[k].framework, knob.framework) == 0;
        if (!known && bench->count < CAL_MAX_KNOBS)
            bench->knobs[bench->count++] = knob;
    }
}

/* Predictions and derivatives where every factor is 1. */
static void look_around(Bench *bench)
{
    const int n = (int)bench->steps->len;
    const double moved = STEP;
    for (int i = 0; i < n; i++)
        bench->before[i] = residual_of(bench, i, NULL, 0, NULL);
    for (int k = 0; k < bench->count; k++)
        for (int i = 0; i < n; i++)
            bench->jacobian[k * n + i] = (residual_of(bench, i, &k, 1, &moved) - bench->before[i]) / STEP;
}

static bool judge(const CalStepFit *fit, GError **error)
{
    int told = 0;
    for (int k = 0; k < fit->count; k++)
        told += fit->knobs[k].fitted;
    if (told == 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "the %d rows tell no factor: %s; the presets stand as they are", fit->rows,
                        fit->knobs[0].why);
    if (fit->unseen.mean_frac > fit->before.mean_frac)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "on held-out rows the fit errs by %.1f %% on average and the presets by %.1f %%; these "
            "%d rows are too few or too alike to fit; measure more steps, of different sizes",
            100 * fit->unseen.mean_frac, 100 * fit->before.mean_frac, fit->rows);
    return true;
}

static void hand_out(const Bench *bench, const char *group, const double *residual, GArray *residuals)
{
    for (int i = 0; i < (int)bench->steps->len; i++) {
        const CalStep *step = step_at(bench, i);
        cal_residual_add(residuals, group, step->id, step->measured_s, step->measured_s * exp(residual[i]));
    }
}

static void fit_all(Bench *bench, CalStepFit *fit, GArray *residuals)
{
    const int n = (int)bench->steps->len;
    g_autofree int *all = g_new(int, (gsize)n);
    g_autofree double *after = g_new(double, (gsize)n), *unseen = g_new(double, (gsize)n);
    look_around(bench);
    for (int i = 0; i < n; i++)
        all[i] = i;
    fit_rows(bench, all, n, fit->knobs, &fit->noise_frac);
    for (int i = 0; i < n; i++)
        after[i] = residual_under(bench, i, fit->knobs);
    fit->count = bench->count;
    fit->rows = n;
    fit->folds = n > 2 * FOLDS ? FOLDS : n;
    fit->before = errors_of(bench->before, n);
    fit->after = errors_of(after, n);
    cross_validate(bench, fit->folds, unseen);
    fit->unseen = errors_of(unseen, n);
    hand_out(bench, "before the fit", bench->before, residuals);
    hand_out(bench, "after it", after, residuals);
    hand_out(bench, "not seen by the fit", unseen, residuals);
}

bool cal_fit_steps(const GPtrArray *steps, CalPredictStep predict, void *data, GArray *residuals,
                   CalStepFit *ret_fit, GError **error)
{
    if (!check_steps(steps, error))
        return false;
    Bench bench = {.steps = steps, .predict = predict, .data = data};
    list_knobs(&bench);
    bench.before = g_new(double, steps->len);
    bench.jacobian = g_new(double, steps->len *(guint)bench.count);
    bench.turned = g_new(Spec, 1);
    bench.last = g_new(Last, steps->len);
    find_repeated(&bench);
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    fit_all(&bench, fit, residuals);
    g_free(bench.before);
    g_free(bench.jacobian);
    g_free(bench.turned);
    g_free(bench.last);
    if (bench.error != NULL) {
        g_propagate_error(error, bench.error);
        return false;
    }
    if (!judge(fit, error))
        return false;
    *ret_fit = *fit;
    return true;
}
