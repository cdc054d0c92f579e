/* search/axes.c - see axes.h. The table comes last; rows stand in the order of columns. */
#include "search/axes.h"

#include <string.h>

#include "spec/notes.h"
#include "spec/placement.h"

/* --- precision, order, overlap --- */

static bool tries_precisions(const Spec *asked)
{
    return asked->search.precision != 0;
}

static bool precision_shown(const Spec *asked, const Spec *chosen)
{
    (void)chosen;
    return tries_precisions(asked);
}

static bool order_differs(const Spec *asked, const Spec *chosen)
{
    return strcmp(asked->parallel.order, chosen->parallel.order) != 0;
}

static bool order_shown(const Spec *asked, const Spec *chosen)
{
    (void)chosen;
    return spec_order_is_auto(asked) && asked->search.order_count != 1;
}

static void write_order(OrrJsonWriter *w, const char *key, const Spec *chosen)
{
    orr_jw_text(w, key, chosen->parallel.order);
}

static char *order_text(const Spec *chosen)
{
    return g_strdup(chosen->parallel.order);
}

static bool overlap_is_auto(const Spec *asked)
{
    return (asked->execution.overlap & SPEC_OVERLAP_AUTO) != 0;
}

static bool overlap_differs(const Spec *asked, const Spec *chosen)
{
    return asked->execution.overlap != chosen->execution.overlap;
}

static void write_overlap(OrrJsonWriter *w, const char *key, const Spec *chosen)
{
    orr_jw_begin(w, key, '[');
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((chosen->execution.overlap & 1u << i) != 0)
            orr_jw_text(w, NULL, orr_word(&spec_words_overlap, i));
    orr_jw_end(w, ']');
}

static char *join_overlap(unsigned overlap, const char *between)
{
    GString *words = g_string_new(NULL);
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((overlap & 1u << i) != 0)
            g_string_append_printf(words, "%s%s", words->len > 0 ? between : "",
                                   orr_word(&spec_words_overlap, i));
    return g_string_free(words, FALSE);
}

static char *overlap_text(const Spec *chosen)
{
    char *words = join_overlap(chosen->execution.overlap, "+");
    if (words[0] != '\0')
        return words;
    g_free(words);
    return g_strdup("none");
}

static char *overlap_cell(const Spec *chosen)
{
    return join_overlap(chosen->execution.overlap, " ");
}

/* --- recomputation --- */

static bool recompute_is_auto(const Spec *asked)
{
    return (int)asked->training.recompute.mode == SPEC_AUTO;
}

static bool recompute_differs(const Spec *asked, const Spec *chosen)
{
    const SpecRecompute *was = &asked->training.recompute, *is = &chosen->training.recompute;
    return was->mode != is->mode || was->layers != is->layers || was->every_n_layers != is->every_n_layers ||
           was->modules != is->modules;
}

static void write_recompute(OrrJsonWriter *w, const char *key, const Spec *chosen)
{
    const SpecRecompute *recompute = &chosen->training.recompute;
    const char *mode = spec_word(&spec_words_recompute, (int)recompute->mode);
    const bool every = recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER,
               modules = recompute->mode == SPEC_RECOMPUTE_MODULES;
    if (recompute->layers == 0 && !every && !modules) {
        orr_jw_text(w, key, mode);
        return;
    }
    orr_jw_begin(w, key, '{');
    orr_jw_text(w, "mode", mode);
    if (modules) {
        orr_jw_begin(w, "modules", '[');
        for (int i = 0; i < spec_words_module.count; i++)
            if ((recompute->modules & 1u << i) != 0)
                orr_jw_text(w, NULL, orr_word(&spec_words_module, i));
        orr_jw_end(w, ']');
    } else
        orr_jw_int(w, every ? "every_n_layers" : "layers",
                   every ? recompute->every_n_layers : recompute->layers);
    orr_jw_end(w, '}');
}

static char *recompute_text(const Spec *chosen)
{
    return g_strdup(spec_word(&spec_words_recompute, (int)chosen->training.recompute.mode));
}

static char *recompute_cell(const Spec *chosen)
{
    return spec_recompute_words(&chosen->training.recompute);
}

static bool some_layers(const Spec *asked, const Spec *chosen)
{
    return recompute_is_auto(asked) && chosen->training.recompute.layers > 0;
}

/* --- offload --- */

static bool scheme_is_auto(const Spec *asked)
{
    return (int)asked->offload.scheme == SPEC_AUTO;
}

static bool ratio_set(const Spec *asked, const Spec *chosen)
{
    return scheme_is_auto(asked) && spec_offloads_states(&chosen->offload);
}

static bool ratio_saved(const Spec *asked, const Spec *chosen)
{
    return asked->offload.scheme != chosen->offload.scheme && spec_offloads_states(&chosen->offload) &&
           asked->offload.ratio < 0;
}

static void write_ratio(OrrJsonWriter *w, const char *key, const Spec *chosen)
{
    orr_jw_number(w, key, chosen->offload.ratio);
}

static char *ratio_text(const Spec *chosen)
{
    return g_strdup_printf("%g", chosen->offload.ratio);
}

static bool ratio_shown(const Spec *asked, const Spec *chosen)
{
    return ratio_set(asked, chosen) && chosen->offload.ratio < 1;
}

static bool host_layers_shown(const Spec *asked, const Spec *chosen)
{
    (void)chosen;
    return asked->offload.activation_layers == SPEC_AUTO;
}

/* --- when words are of use --- */

static bool sequence_shown(const Spec *asked, const Spec *chosen)
{
    (void)asked;
    return chosen->parallel.tensor > 1 && chosen->parallel.sequence_parallel == 1;
}

static bool has_experts(const Spec *asked, const Spec *chosen)
{
    (void)asked;
    return chosen->model.moe.experts > 0;
}

static bool dispatcher_saved(const Spec *asked, const Spec *chosen)
{
    return has_experts(asked, chosen) && asked->parallel.moe_dispatcher != chosen->parallel.moe_dispatcher;
}

static bool dispatcher_shown(const Spec *asked, const Spec *chosen)
{
    return (int)asked->parallel.moe_dispatcher == SPEC_AUTO && chosen->parallel.expert > 1;
}

static bool has_pipeline(const Spec *asked, const Spec *chosen)
{
    (void)asked;
    return chosen->parallel.pipeline > 1;
}

static bool attention_shown(const Spec *asked, const Spec *chosen)
{
    (void)chosen;
    return (int)asked->execution.attention == SPEC_AUTO;
}

/* --- the table --- */

/* clang-format off */
#define FIELD(path)   .offset = offsetof(Spec, path)
#define GROUP(name)   .grouped = true, .member = offsetof(SearchGroup, name)
/* clang-format on */

static const SearchAxis axes[] = {
    {"parallel.tensor", FIELD(parallel.tensor), GROUP(tensor), .planned = true, .settled = true,
     .keys = SEARCH_KEY_COST,
     .along = {"parallel.pipeline", "parallel.sequence_parallel", "parallel.expert_tensor"}, .place = 1,
     .tag = "tp"},
    {"parallel.sequence_parallel", .form = SEARCH_AXIS_TRUTH, FIELD(parallel.sequence_parallel),
     GROUP(sequence_parallel), .keys = SEARCH_KEY_COST, .along = {"execution.overlap"}, .place = 2,
     .tag = "sp", .is_shown = sequence_shown},
    {"parallel.context", FIELD(parallel.context), GROUP(context), .planned = true, .settled = true,
     .keys = SEARCH_KEY_COST | SEARCH_KEY_COUNT, .place = 3, .tag = "cp", .least = 2},
    {"parallel.pipeline", FIELD(parallel.pipeline), GROUP(pipeline), .planned = true, .settled = true,
     .keys = SEARCH_KEY_PLACED | SEARCH_KEY_COUNT, .place = 4, .tag = "pp"},
    {"parallel.virtual_stages", FIELD(parallel.virtual_stages), .planned = true, .settled = true, .place = 5,
     .tag = "vpp", .least = 2},
    {"parallel.schedule", .form = SEARCH_AXIS_WORD, .words = &spec_words_schedule, FIELD(parallel.schedule),
     .place = 15, .is_shown = has_pipeline},
    {"parallel.data", FIELD(parallel.data), GROUP(data), .planned = true, .settled = true, .derived = true,
     .keys = SEARCH_KEY_PLACED | SEARCH_KEY_COUNT, .place = 6, .tag = "dp"},
    {"parallel.expert", FIELD(parallel.expert), GROUP(expert), .settled = true, .keys = SEARCH_KEY_COST,
     .along = {"parallel.expert_tensor", "parallel.moe_dispatcher", "execution.overlap"}, .place = 7,
     .tag = "ep", .is_shown = has_experts},
    {"parallel.expert_tensor", FIELD(parallel.expert_tensor), GROUP(expert_tensor), .settled = true,
     .keys = SEARCH_KEY_COST, .place = 8, .tag = "etp", .is_shown = has_experts},
    {"parallel.moe_dispatcher", .form = SEARCH_AXIS_WORD, .words = &spec_words_dispatcher,
     FIELD(parallel.moe_dispatcher), GROUP(dispatcher), .keys = SEARCH_KEY_COST, .place = 9,
     .is_saved = dispatcher_saved, .is_shown = dispatcher_shown},
    {"parallel.order", .form = SEARCH_AXIS_OTHER, GROUP(order), .indexed = true, .keys = SEARCH_KEY_PLACED,
     .place = 10, .is_auto = spec_order_is_auto, .is_saved = order_differs, .is_shown = order_shown,
     .write = write_order, .text = order_text},
    {"parallel.zero", FIELD(parallel.zero), .settled = true, .place = 11, .tag = "zero"},
    {"parallel.zero_group_gpus", FIELD(parallel.zero_group_gpus), .place = 12, .tag = "/", .joined = true,
     .least = 1},
    {"training.micro_batch", FIELD(training.micro_batch), GROUP(micro_batch), .planned = true,
     .settled = true, .keys = SEARCH_KEY_COST, .place = 13, .tag = "mb"},
    {"training.recompute", .form = SEARCH_AXIS_OTHER, .place = 16, .tag = "recompute ",
     .is_auto = recompute_is_auto, .is_saved = recompute_differs, .write = write_recompute,
     .text = recompute_text, .cell = recompute_cell},
    {"training.recompute.layers", .column = "", FIELD(training.recompute.layers), .follows = true,
     .inexact = true, .is_set = some_layers},
    {"training.precision", .form = SEARCH_AXIS_WORD, .words = &spec_words_precision,
     FIELD(training.precision), GROUP(precision), .indexed = true, .keys = SEARCH_KEY_COST, .place = 14,
     .is_auto = tries_precisions, .is_shown = precision_shown},
    {"offload.activation_layers", FIELD(offload.activation_layers), GROUP(offloaded),
     .keys = SEARCH_KEY_COUNT, .place = 17, .tag = "offload ", .least = 1, .is_shown = host_layers_shown},
    {"execution.attention", .form = SEARCH_AXIS_WORD, .words = &spec_words_attention,
     FIELD(execution.attention), GROUP(attention), .keys = SEARCH_KEY_COST, .place = 20,
     .is_shown = attention_shown},
    {"parallel.embedding_as_layer", .form = SEARCH_AXIS_FLAG, FIELD(parallel.embedding_as_layer),
     .follows = true},
    {"parallel.loss_as_layer", .form = SEARCH_AXIS_FLAG, FIELD(parallel.loss_as_layer), .follows = true},
    {"execution.overlap", .form = SEARCH_AXIS_OTHER, GROUP(overlap), .indexed = true, .keys = SEARCH_KEY_COST,
     .is_auto = overlap_is_auto, .is_saved = overlap_differs, .write = write_overlap, .text = overlap_text,
     .cell = overlap_cell},
    {"offload.scheme", .column = "offload_scheme", .form = SEARCH_AXIS_WORD, .words = &spec_words_offload,
     FIELD(offload.scheme), GROUP(scheme), .indexed = true, .keys = SEARCH_KEY_COUNT, .place = 18,
     .is_shown = ratio_set},
    {"offload.ratio", .column = "offload_ratio", .form = SEARCH_AXIS_OTHER, .follows = true, .place = 19,
     .is_set = ratio_set, .is_saved = ratio_saved, .is_shown = ratio_shown, .write = write_ratio,
     .text = ratio_text},
};

const SearchAxis *search_axes(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(axes);
    return axes;
}

const SearchAxis *search_axis(const char *key)
{
    for (gsize i = 0; i < G_N_ELEMENTS(axes); i++)
        if (strcmp(axes[i].key, key) == 0)
            return &axes[i];
    return NULL;
}

const char *search_axis_member(const SearchAxis *axis)
{
    return strchr(axis->key, '.') + 1;
}

const char *search_axis_column(const SearchAxis *axis)
{
    return axis->column == NULL ? search_axis_member(axis) : axis->column[0] != '\0' ? axis->column : NULL;
}

/* --- values --- */

static bool is_truth(const SearchAxis *axis)
{
    return axis->form == SEARCH_AXIS_TRUTH || axis->form == SEARCH_AXIS_FLAG;
}

int search_axis_value(const SearchAxis *axis, const Spec *spec)
{
    int value;
    g_assert(axis->form != SEARCH_AXIS_OTHER);
    if (axis->form == SEARCH_AXIS_FLAG)
        return *((const bool *)(const void *)((const char *)spec + axis->offset)) ? 1 : 0;
    memcpy(&value, (const char *)spec + axis->offset, sizeof value);
    return value;
}

int search_axis_of_group(const SearchAxis *axis, const SearchGroup *group)
{
    int value;
    g_assert(axis->grouped);
    memcpy(&value, (const char *)group + axis->member, sizeof value);
    return value;
}

void search_axis_apply(const SearchAxis *axis, const SearchGroup *group, Spec *spec)
{
    const int value = search_axis_of_group(axis, group);
    g_assert(!axis->indexed);
    memcpy((char *)spec + axis->offset, &value, sizeof value);
}

bool search_axis_is_auto(const SearchAxis *axis, const Spec *asked)
{
    if (axis->follows)
        return false;
    return axis->is_auto != NULL ? axis->is_auto(asked) : search_axis_value(axis, asked) == SPEC_AUTO;
}

bool search_axis_is_set(const SearchAxis *axis, const Spec *asked, const Spec *chosen)
{
    if (axis->is_set != NULL)
        return axis->is_set(asked, chosen);
    return axis->follows ? search_axis_value(axis, asked) != search_axis_value(axis, chosen)
                         : search_axis_is_auto(axis, asked);
}

bool search_axis_is_saved(const SearchAxis *axis, const Spec *asked, const Spec *chosen)
{
    if (axis->inexact)
        return false;
    if (axis->is_saved != NULL)
        return axis->is_saved(asked, chosen);
    return axis->settled || search_axis_value(axis, asked) != search_axis_value(axis, chosen);
}

void search_axis_write(const SearchAxis *axis, OrrJsonWriter *w, const char *key, const Spec *chosen)
{
    if (axis->form == SEARCH_AXIS_OTHER)
        axis->write(w, key, chosen);
    else if (axis->form == SEARCH_AXIS_WORD)
        orr_jw_text(w, key, spec_word(axis->words, search_axis_value(axis, chosen)));
    else if (is_truth(axis))
        orr_jw_bool(w, key, search_axis_value(axis, chosen) == 1);
    else
        orr_jw_int(w, key, search_axis_value(axis, chosen));
}

char *search_axis_text(const SearchAxis *axis, const Spec *chosen)
{
    if (axis->form == SEARCH_AXIS_OTHER)
        return axis->text(chosen);
    const int value = search_axis_value(axis, chosen);
    if (axis->form == SEARCH_AXIS_WORD)
        return g_strdup(spec_word(axis->words, value));
    if (is_truth(axis))
        return g_strdup(value != 0 ? "true" : "false");
    return g_strdup_printf("%d", value);
}

char *search_axis_cell(const SearchAxis *axis, const Spec *chosen)
{
    if (axis->cell != NULL)
        return axis->cell(chosen);
    if (is_truth(axis))
        return g_strdup_printf("%d", search_axis_value(axis, chosen));
    return search_axis_text(axis, chosen);
}

int search_axes_key(const SearchGroup *group, unsigned keys, int *ret_numbers)
{
    int count = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(axes); i++)
        if ((axes[i].keys & keys) != 0)
            ret_numbers[count++] = search_axis_of_group(&axes[i], group);
    g_assert(count <= SEARCH_AXES_MOST);
    return count;
}

/* --- words --- */

static void describe(const SearchAxis *axis, const Spec *asked, const Spec *chosen, GString *out)
{
    if (axis->is_shown != NULL && !axis->is_shown(asked, chosen))
        return;
    if (axis->form == SEARCH_AXIS_NUMBER && search_axis_value(axis, chosen) < axis->least)
        return;
    g_autofree char *cell = search_axis_cell(axis, chosen);
    g_string_append_printf(out, "%s%s%s", axis->joined ? "" : " ", axis->tag != NULL ? axis->tag : "",
                           is_truth(axis) ? "" : cell);
}

void search_axes_describe(const Spec *asked, const Spec *chosen, GString *out)
{
    for (int place = 1; place <= (int)G_N_ELEMENTS(axes); place++)
        for (gsize i = 0; i < G_N_ELEMENTS(axes); i++)
            if (axes[i].place == place)
                describe(&axes[i], asked, chosen, out);
}
