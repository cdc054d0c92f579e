/* report/text.c - a report as a page of text (UTF-8, at most 100 columns) to paste into a plan. */
#include <string.h>

#include "base/text.h"
#include "costmodel/lengths.h"
#include "costmodel/ops.h"
#include "report/batches.h"
#include "report/groups.h"
#include "report/effective.h"
#include "report/input.h"
#include "report/jitter.h"
#include "report/measured.h"
#include "report/offload.h"
#include "report/page.h"
#include "report/parts.h"
#include "report/network.h"
#include "report/servers.h"
#include "report/text_memory.h"
#include "spec/notes.h"
#include "spec/run_length.h"

enum { LABEL_COLUMN = 14, BAR_WIDTH = 40, BESIDE_BAR = 38 };

#define GIB 1073741824.0

/* --- what was simulated --- */

static void append_degree(GString *out, const char *name, int degree, bool always)
{
    if (always || degree > 1)
        g_string_append_printf(out, "%s%s%d", out->len > 0 ? " " : "", name, degree);
}

static char *layout_line(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    GString *line = g_string_new(NULL);
    append_degree(line, "tp", parallel->tensor, true);
    if (parallel->tensor > 1 && parallel->sequence_parallel == 1)
        g_string_append(line, " sp");
    append_degree(line, "cp", parallel->context, false);
    append_degree(line, "pp", parallel->pipeline, true);
    append_degree(line, "vpp", parallel->virtual_stages, false);
    append_degree(line, "dp", parallel->data, true);
    if (spec->model.moe.experts > 0) {
        append_degree(line, "ep", parallel->expert, true);
        append_degree(line, "etp", parallel->expert_tensor, true);
    }
    append_degree(line, "zero", parallel->zero, true);
    if (parallel->pipeline > 1)
        g_string_append_printf(line, ", schedule %s",
                               parallel->schedule_file[0] != '\0'
                                   ? parallel->schedule_file
                                   : spec_word(&spec_words_schedule, (int)parallel->schedule));
    if (strcmp(parallel->order, "tp-cp-ep-dp-pp") != 0)
        g_string_append_printf(line, ", ranks in order %s", parallel->order);
    return g_string_free(line, FALSE);
}

/* Texts of many lengths. */
static char *texts_line(const Spec *spec)
{
    char sequences[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE];
    const SpecTraining *training = &spec->training;
    const double trained = cost_trained_tokens(spec), positions = cost_positions(spec),
                 filled = trained / (training->global_batch * positions);
    report_page_whole(sequences, training->global_batch);
    orr_text_count(tokens, trained);
    return training->lengths.packed
               ? g_strdup_printf("%s rows of %d positions, %.1f %% filled with texts of %.0f tokens (%s "
                                 "tokens); micro-batch "
                                 "%d, %d per pipeline",
                                 sequences, training->sequence_length, 100 * filled,
                                 spec_text_tokens(training), tokens, training->micro_batch,
                                 spec_microbatches(spec))
               : g_strdup_printf(
                     "%s texts of %.0f tokens, padded to %.0f (%s tokens, %.0f %% padding); micro-batch %d, "
                     "%d per pipeline",
                     sequences, spec_text_tokens(training), positions, tokens, 100 * (1 - filled),
                     training->micro_batch, spec_microbatches(spec));
}

static char *batch_line(const Spec *spec)
{
    char sequences[ORR_TEXT_SIZE], length[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE];
    const SpecTraining *training = &spec->training;
    const double step_tokens = (double)training->global_batch * training->sequence_length;
    if (spec->model.list.text != NULL)
        return g_strdup_printf("%s samples; %d at once, %d times a step",
                               report_page_whole(sequences, training->global_batch), training->micro_batch,
                               spec_microbatches(spec));
    if (spec->model.encoder_layers > 0) {
        char encoder[ORR_TEXT_SIZE];
        return g_strdup_printf(
            "%s sequences of %s tokens in the decoder, %s in the encoder; micro-batch %d, %d per pipeline",
            report_page_whole(sequences, training->global_batch),
            report_page_whole(length, training->sequence_length),
            report_page_whole(encoder, training->encoder_sequence_length), training->micro_batch,
            spec_microbatches(spec));
    }
    if (training->lengths.given)
        return texts_line(spec);
    return g_strdup_printf("%s sequences of %s tokens (%s tokens); micro-batch %d, %d per pipeline",
                           report_page_whole(sequences, training->global_batch),
                           report_page_whole(length, training->sequence_length),
                           orr_text_count(tokens, step_tokens), training->micro_batch,
                           spec_microbatches(spec));
}

static char *training_line(const Spec *spec)
{
    const SpecTraining *training = &spec->training;
    const SpecExecution *execution = &spec->execution;
    GString *line = g_string_new(NULL);
    g_autofree char *again = spec_recompute_words(&training->recompute);
    g_string_append_printf(line, "%s, %s, recompute %s",
                           spec_word(&spec_words_precision, (int)training->precision),
                           spec_word(&spec_words_optimizer, (int)training->optimizer), again);
    g_string_append_printf(line, "; %s%s%s attention", execution->framework.name,
                           execution->framework.name[0] != '\0' ? ", " : "",
                           spec_word(&spec_words_attention, (int)cost_attention_kernel(spec)));
    if (execution->compiled)
        g_string_append(line, ", compiled");
    const unsigned overlap = spec_overlap(spec);
    const char *before = "; overlaps ";
    for (int i = 0; i < spec_words_overlap.count; i++) {
        if ((overlap & (1u << i)) == 0)
            continue;
        g_string_append_printf(line, "%s%s", before, orr_word(&spec_words_overlap, i));
        before = ", ";
    }
    if (spec_offloads_states(&spec->offload))
        g_string_append_printf(line, "; offload %s",
                               spec_word(&spec_words_offload, (int)spec->offload.scheme));
    const int offloaded = spec->offload.activation_layers;
    if (offloaded >= spec->model.layers)
        g_string_append(line, "; activations wait on the host");
    else if (offloaded > 0)
        g_string_append_printf(line, "; activations of %d layers a stage wait on the host", offloaded);
    return g_string_free(line, FALSE);
}

static void write_scenario(const Report *report, GString *out)
{
    const Spec *spec = report->spec;
    char number[ORR_TEXT_SIZE], active[ORR_TEXT_SIZE];
    const char *name = spec->name[0] != '\0' ? spec->name : spec->model.name;
    const gsize start = out->len;
    report_page_entry(out, "", 0, name);
    const glong width = MIN(g_utf8_strlen(out->str + start, -1) - 1, report_page_width());
    for (glong i = 0; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append_c(out, '\n');

    g_autoptr(GString) model = g_string_new(spec->model.name);
    g_string_append_printf(model, ", %s parameters", orr_text_count(number, report->parameters));
    if (report->active_parameters < report->parameters)
        g_string_append_printf(model, " (%s active a token)",
                               orr_text_count(active, report->active_parameters));
    if (report->trained_parameters < report->parameters && spec->training.adapter.given)
        g_string_append_printf(
            model, ", %s trained (%s, rank %d)", orr_text_count(active, report->trained_parameters),
            spec_word(&spec_words_task, (int)spec->training.task), spec->training.adapter.rank);
    else if (report->trained_parameters < report->parameters)
        g_string_append_printf(model, ", %s trained", orr_text_count(active, report->trained_parameters));
    if (spec->training.reference != SPEC_REFERENCE_NONE)
        g_string_append_printf(model, ", %s (reference: %s)",
                               spec_word(&spec_words_task, (int)spec->training.task),
                               spec_word(&spec_words_reference, (int)spec->training.reference));
    if (spec->model.encoder_layers > 0)
        g_string_append_printf(model, ", %d encoder and %d decoder layers", spec->model.encoder_layers,
                               spec->model.layers - spec->model.encoder_layers);
    else
        g_string_append_printf(model, ", %d layers", spec->model.layers);
    if (spec->model.vision.layers > 0)
        g_string_append_printf(model, " after %d of a vision tower", spec->model.vision.layers);
    report_page_entry(out, "  Model", LABEL_COLUMN, model->str);

    const SpecCluster *cluster = &spec->cluster;
    g_autofree char *cluster_line = g_strdup_printf(
        "%s: %d x %d %s%s%s", report_page_gpus(number, report->gpus), cluster->nodes, cluster->gpus_per_node,
        cluster->accelerator.name, cluster->name[0] != '\0' ? ", " : "", cluster->name);
    if (cluster->group_count > 0)
        report_groups_cluster(report, out);
    else
        report_page_entry(out, "  Cluster", LABEL_COLUMN, cluster_line);
    g_autofree char *layout = layout_line(spec), *batch = batch_line(spec), *training = training_line(spec);
    report_page_entry(out, "  Layout", LABEL_COLUMN, layout);
    report_page_entry(out, "  Batch", LABEL_COLUMN, batch);
    report_page_entry(out, "  Training", LABEL_COLUMN, training);
    if (report->chosen == NULL || report->chosen->len == 0)
        return;
    g_autoptr(GString) chosen = g_string_new(NULL);
    for (guint i = 0; i < report->chosen->len; i++)
        g_string_append_printf(chosen, "%s%s", i > 0 ? ", " : "",
                               (const char *)g_ptr_array_index(report->chosen, i));
    report_page_entry(out, "  Auto chose", LABEL_COLUMN, chosen->str);
}

/* --- the answer --- */

static void write_own(const Report *report, GString *out)
{
    const ReportOwn *own = &report->own;
    char step[ORR_TEXT_SIZE], low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    if (own->runs == 0)
        return;
    g_autofree char *line = g_strdup_printf(
        "%s, %s .. %s: what %d run%s of your own make of it (x %.3f)", orr_text_seconds(step, own->step_s),
        orr_text_seconds(low, own->low_s), orr_text_seconds(high, own->high_s), own->runs,
        own->runs == 1 ? "" : "s", own->factor);
    report_page_entry(out, "  Corrected", LABEL_COLUMN, line);
}

static void write_interval(const Report *report, GString *out)
{
    if (!(report->interval_coverage > 0.0))
        return;
    char low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    const double times = report->interval_widening;
    g_autofree char *widened =
        times > 1 ? g_strdup_printf("; %g times as wide, see Outside", times) : g_strdup("");
    g_autofree char *interval = g_strdup_printf(
        "%s .. %s (%.0f %%, from %d comparable published runs%s)",
        orr_text_seconds(low, report->interval_low_s), orr_text_seconds(high, report->interval_high_s),
        report->interval_coverage * 100.0, report->interval_runs, widened);
    report_page_entry(out, "  Interval", LABEL_COLUMN, interval);
    write_own(report, out);
    if (report->outside_count == 0)
        return;
    g_autoptr(GString) outside = g_string_new("the published runs: ");
    for (int i = 0; i < report->outside_count; i++)
        g_string_append_printf(outside, "%s%s", i > 0 ? "; " : "", report->outside[i]);
    report_page_entry(out, "  Outside", LABEL_COLUMN, outside->str);
}

/* Texts [count] in a frame, as many on a line as the page has room for. */
static void write_box(const char *const *texts, int count, GString *out)
{
    enum { FRAME = 8 };
    g_autoptr(GString) joined = g_string_new(NULL);
    for (int i = 0, at = 0; i < count; i++) {
        const int wide = (int)g_utf8_strlen(texts[i], -1);
        const bool beside = i > 0 && at + 4 + wide + FRAME <= report_page_width();
        g_string_append_printf(joined, "%s%s", i == 0 ? "" : beside ? "    " : "\n", texts[i]);
        at = beside ? at + 4 + wide : wide;
    }
    g_auto(GStrv) lines = g_strsplit(joined->str, "\n", -1);
    glong width = 0;
    for (char **line = lines; *line != NULL; line++)
        width = MAX(width, g_utf8_strlen(*line, -1));
    g_string_append(out, "\n  \u250c");
    for (glong i = -4; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append(out, "\u2510\n");
    for (char **line = lines; *line != NULL; line++)
        g_string_append_printf(out, "  \u2502  %s%*s  \u2502\n", *line,
                               (int)(width - g_utf8_strlen(*line, -1)), "");
    g_string_append(out, "  \u2514");
    for (glong i = -4; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append(out, "\u2518\n\n");
}

static void write_headline(const Report *report, GString *out)
{
    char step[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE], rate[ORR_TEXT_SIZE];
    static const char *const verdicts[] = {"DOES NOT FIT", "AT THE EDGE", "fits"};
    g_autofree char *held = report_occupied(report);
    g_autofree char *takes =
        g_strdup_printf("STEP %s", orr_text_seconds(step, (double)report->step_ps * 1e-12));
    g_autofree char *mfu = g_strdup_printf("MFU %.1f %%", report->mfu * 100.0);
    g_autofree char *through =
        g_strdup_printf("%s %s/s", report_page_whole(tokens, report_items_of(report, report->tokens_per_s)),
                        report_items(report));
    g_autofree char *memory = g_strdup_printf("%s (%s)", verdicts[report->memory_verdict], held);
    const char *const texts[] = {takes, mfu, through, memory};
    write_box(texts, G_N_ELEMENTS(texts), out);
    const double items_per_s = report_items_of(report, report->tokens_per_s_per_gpu);
    g_autofree char *speed = g_strdup_printf(
        "%s %s/s, %s of model FLOPs; MFU %.1f %%, HFU %.1f %%",
        items_per_s < 100.0 ? orr_text_si(tokens, items_per_s, "") : report_page_whole(tokens, items_per_s),
        report_items(report), orr_text_si(rate, report->model_flops_per_s_per_gpu, "FLOP/s"),
        report->mfu * 100.0, report->hfu * 100.0);
    report_page_entry(out, "  Per GPU", LABEL_COLUMN, speed);
    if (report->textbook)
        report_page_entry(out, "  Textbook", LABEL_COLUMN,
                          "all stages take as long, a third each for the forward and both gradients; nothing "
                          "else takes time");
    write_interval(report, out);
}

/* --- where the time goes --- */

static void write_time(const Report *report, GString *out)
{
    enum { COLUMNS = 4, PER_MILLE = 1000 };
    ReportTime times[REPORT_TIME_COUNT];
    int64_t parts_ps[REPORT_TIME_COUNT], shown[REPORT_TIME_COUNT], share[REPORT_TIME_COUNT];
    report_times(report->part_ps, report->bubble_ps, report->late_ps, times);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        parts_ps[i] = times[i].ps;
    const ReportScale scale = report_page_scale(report->step_ps);
    const int64_t units = (report->step_ps + scale.quantum_ps / 2) / scale.quantum_ps;
    report_page_apportion(parts_ps, REPORT_TIME_COUNT, report->step_ps, units, shown);
    report_page_apportion(parts_ps, REPORT_TIME_COUNT, report->step_ps, PER_MILLE, share);
    double unit_per_quantum = 1.0;
    for (int i = 0; i < scale.decimals; i++)
        unit_per_quantum /= 10.0;

    g_string_append_c(out, '\n');
    report_page_say(out, 0, "Where the time goes (rank %d, the last to finish)",
                    report->result.critical_rank);
    OrrTable *table = orr_table_new(NULL, COLUMNS);
    for (int i = 0; i <= REPORT_TIME_COUNT; i++) {
        const bool sum = i == REPORT_TIME_COUNT;
        if (!sum && shown[i] == 0 && share[i] == 0) /* nothing that could be read */
            continue;
        char time[ORR_TEXT_SIZE], percent[ORR_TEXT_SIZE];
        g_snprintf(time, sizeof time, "%.*f %s", scale.decimals,
                   (double)(sum ? units : shown[i]) * unit_per_quantum, scale.unit);
        g_snprintf(percent, sizeof percent, "%.1f %%", (double)(sum ? PER_MILLE : share[i]) / 10.0);
        g_autoptr(GString) bar = g_string_new(NULL);
        if (!sum)
            orr_text_bar(bar, (double)times[i].ps / (double)report->step_ps,
                         CLAMP(report_page_width() - BESIDE_BAR, 8, BAR_WIDTH));
        orr_table_row(table, (const char *[COLUMNS]){sum ? "step" : times[i].label, time, percent, bar->str});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
    if (report->program.classes > 1)
        report_page_say(out, 2, "Pipeline bubble, mean over ranks: %.1f %% of the step",
                        report->bubble_frac * 100.0);
    if (report->context_busiest > 1.005)
        report_page_say(out, 2, "Causal attention of context ranks: %.2f to %.2f of the mean; all wait",
                        report->context_work[0], report->context_busiest);
    if (report->expert_busiest > 1.005)
        report_page_say(out, 2, "The busiest expert rank has %.2f of the mean rows; all wait",
                        report->expert_busiest);
    if (report->dropped_frac > 0)
        report_page_say(out, 2, "%.1f %% of routed rows find their expert full and are dropped",
                        report->dropped_frac * 100.0);
}

/* --- the whole run, and the small print --- */

static void write_training(const Report *report, GString *out)
{
    if (!(report->days > 0.0))
        return;
    char text[ORR_TEXT_SIZE];
    g_autoptr(GString) line = g_string_new(NULL);
    const double days = report->effective.told ? report->effective.days : report->days;
    g_string_append(line, orr_text_seconds(text, days * 86400.0));
    g_string_append_printf(line, ", %s GPU-hours", report_page_whole(text, report->gpu_hours));
    if (report->kwh > 0.0)
        g_string_append_printf(line, ", %s kWh", report_page_whole(text, report->kwh));
    if (report->waiting_kwh > 0 && report->waiting_w < report->step_w)
        g_string_append_printf(line, " (%s while GPUs wait between steps)",
                               report_page_whole(text, report->waiting_kwh));
    if (report->co2_kg > 0)
        g_string_append_printf(line, ", %s kg of CO2", report_page_whole(text, report->co2_kg));
    if (report->usd > 0.0)
        g_string_append_printf(line, ", %s USD", report_page_whole(text, report->usd));
    if (report->usd > 0 && report->spec->cluster.usd_per_kwh > 0 && !(report->kwh > 0))
        g_string_append(line, " without electricity (cluster.accelerator.power_w is not known)");
    g_string_append_printf(line, " for %s tokens", orr_text_count(text, report->spec->training.tokens));
    g_string_append_c(out, '\n');
    report_page_entry(out, "Whole run", LABEL_COLUMN, line->str);
    report_batches_text(report, LABEL_COLUMN, out);
    report_effective_text(&report->effective, out);
}

static void write_epoch(const Report *report, GString *out)
{
    char steps[ORR_TEXT_SIZE], samples[ORR_TEXT_SIZE], seconds[ORR_TEXT_SIZE];
    if (!(report->epoch_steps > 0))
        return;
    g_autofree char *line = g_strdup_printf(
        "%s steps, %s; %s samples a data-parallel rank", report_page_whole(steps, report->epoch_steps),
        orr_text_seconds(seconds, report->epoch_s), report_page_whole(samples, report->epoch_rank_samples));
    g_string_append_c(out, '\n');
    report_page_entry(out, "Epoch", LABEL_COLUMN, line);
}

static void write_conventions(const Report *report, GString *out)
{
    char peak[ORR_TEXT_SIZE];
    g_autofree char *note =
        g_strdup_printf("model FLOPs of the op list (causal attention halved, LM head in, embedding out, no "
                        "recomputation) over "
                        "the dense %s peak of %s%s; HFU adds recomputation",
                        spec_word(&spec_words_precision, (int)report->spec->training.precision),
                        orr_text_si(peak, report_groups_mean(report->spec, REPORT_MEAN_PEAK_FLOPS), "FLOP/s"),
                        report->spec->cluster.group_count > 0 ? ", the mean of all GPUs" : "");
    g_string_append_c(out, '\n');
    report_page_entry(out, "MFU counts", LABEL_COLUMN, note);
    g_autoptr(GString) others = g_string_new(NULL);
    for (int i = 0; i < COST_CONVENTION_COUNT; i++) {
        if (i != COST_CONVENTION_ORRERY && report->by_convention.mfu[i] > 0.0)
            g_string_append_printf(others, "%s%s %.1f\u00a0%%", others->len > 0 ? ", " : "",
                                   cost_convention_name((CostConvention)i),
                                   report->by_convention.mfu[i] * 100.0);
    }
    if (others->len > 0)
        report_page_entry(out, "Others count", LABEL_COLUMN, others->str);
}

static void write_list(GString *out, const char *label, const GPtrArray *texts)
{
    if (texts == NULL || texts->len == 0)
        return;
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < texts->len; i++)
        g_string_append_printf(line, "%s%s", i > 0 ? ", " : "", (const char *)g_ptr_array_index(texts, i));
    report_page_entry(out, label, LABEL_COLUMN, line->str);
}

/* Of "a.b.key=value" the length of "a.b". */
static gsize section_length(const char *text)
{
    const gsize key = strcspn(text, "=");
    const char *dot = g_strrstr_len(text, (gssize)key, ".");
    return dot != NULL ? (gsize)(dot - text) : 0;
}

/* Texts "a.b.key=value" by what they share: "a.b: key=value, other=value; c: ...". */
static void write_defaulted(GString *out, const GPtrArray *texts)
{
    if (texts == NULL || texts->len == 0)
        return;
    g_autofree bool *written = g_new0(bool, texts->len);
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < texts->len; i++) {
        const char *first = g_ptr_array_index(texts, i);
        const gsize length = section_length(first);
        if (written[i])
            continue;
        g_string_append_printf(line, "%s%.*s%s", line->len > 0 ? "; " : "", (int)length, first,
                               length > 0 ? ": " : "");
        for (guint j = i; j < texts->len; j++) {
            const char *text = g_ptr_array_index(texts, j);
            if (section_length(text) != length || strncmp(text, first, length) != 0)
                continue;
            g_string_append_printf(line, "%s%s", j > i ? ", " : "", text + length + (length > 0 ? 1 : 0));
            written[j] = true;
        }
    }
    report_page_entry(out, "Defaulted", LABEL_COLUMN, line->str);
}

/* What the framework does not have. */
static void write_notes(const Report *report, GString *out)
{
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    report_notes(report, notes);
    spec_source_notes(report->source, notes);
    for (guint i = 0; i < notes->len; i++)
        report_page_entry(out, i == 0 ? "  Note" : "", LABEL_COLUMN, g_ptr_array_index(notes, i));
}

static void write_stamp(const Report *report, GString *out)
{
    const SpecSource *source = report->source;
    g_autofree char *stamp =
        source != NULL && source->scenario_hash != NULL
            ? g_strdup_printf("orrery " ORRERY_VERSION ", scenario %s", source->scenario_hash)
            : g_strdup("orrery " ORRERY_VERSION);
    report_page_entry(out, "Stamp", LABEL_COLUMN, stamp);
    if (source == NULL)
        return;
    write_list(out, "Profiles", source->profiles);
    if (report->verbose)
        write_defaulted(out, source->defaulted);
    else if (source->defaulted != NULL && source->defaulted->len > 0) {
        g_autofree char *count = g_strdup_printf("%u fields (--verbose lists them)", source->defaulted->len);
        report_page_entry(out, "Defaulted", LABEL_COLUMN, count);
    }
}

void report_write_text(const Report *report, GString *out)
{
    write_scenario(report, out);
    write_notes(report, out);
    write_headline(report, out);
    write_time(report, out);
    report_groups_text(report, out);
    report_input_text(report, out);
    report_jitter_text(report, out);
    report_measured_text(report, out);
    report_network_text(report, out);
    report_servers_text(report, out);
    report_text_memory(report, out);
    report_text_offload(report, out);
    write_training(report, out);
    write_epoch(report, out);
    write_conventions(report, out);
    write_stamp(report, out);
}
