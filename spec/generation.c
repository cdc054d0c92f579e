/* spec/generation.c - the table of generations, and what an accelerator's file may say of its own. */
#include "spec/generation.h"

#include <string.h>

#include "base/text.h"
#include "spec/fields_internal.h"

/* --- the rows --- */

typedef struct Row {
    const char *name;
    SpecGeneration traits;
} Row;

#define ROW(word, ...)                                                                                       \
    {                                                                                                        \
        word,                                                                                                \
        {                                                                                                    \
            .name = word, __VA_ARGS__                                                                        \
        }                                                                                                    \
    }
/* Chips that are not made of SMs. */
#define NO_SMS .without_sms = true, .foreign_kernels = true, .nccl_row = 1, .sheet_below_highest_clock = true

/* A new generation is one row here, or {"like": ...} in its accelerator's file. */
static const Row rows[] = {
    ROW("pascal", .order = 1, .scale_up_topology = SPEC_TOPOLOGY_CUBE_MESH, .compute_capability = 60),
    ROW("volta", .order = 2, .small_pieces_leave_tensor_cores = true,
        .scale_up_topology = SPEC_TOPOLOGY_CUBE_MESH, .compute_capability = 70),
    ROW("ampere", .order = 3, .nccl_row = 1, .sm_flops_per_clock = 2048, .compute_capability = 80),
    ROW("hopper", .order = 4, .nccl_row = 2, .multicast = true, .sm_flops_per_clock = 4096,
        .narrow_cache_per_clock = 11, .attention_default = SPEC_ATTENTION_SINCE_HOPPER,
        .sheet_below_highest_clock = true, .compute_capability = 90),
    ROW("blackwell", .order = 5, .nccl_row = 3, .multicast = true, .two_sm_tiles = true, .either_order = true,
        .sm_flops_per_clock = 8192, .attention_default = SPEC_ATTENTION_SINCE_BLACKWELL,
        .late_latent_heads = true, .fused_grouped_experts = true, .free_queues = true,
        .cudnn_query_tokens = 256, .sheet_below_highest_clock = true, .compute_capability = 100),
    ROW("cdna", .foreign_kernels = true, .assembly_attention = true, .nccl_row = 1,
        .sheet_below_highest_clock = true, .scale_up_topology = SPEC_TOPOLOGY_MESH),
    ROW("tpu", NO_SMS, .chip = SPEC_CHIP_TPU),
    ROW("gaudi", NO_SMS, .chip = SPEC_CHIP_GAUDI),
    ROW("trainium", NO_SMS, .chip = SPEC_CHIP_TRAINIUM),
    ROW("wafer", NO_SMS, .chip = SPEC_CHIP_WAFER),
    ROW("other", NO_SMS, .assumed = true, .chip = SPEC_CHIP_OTHER),
};

const SpecWords spec_words_generation = {"a generation", &rows[0].name, (int)G_N_ELEMENTS(rows), sizeof(Row)};

const SpecGeneration *spec_generation(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i].traits;
    return NULL;
}

const SpecGeneration *spec_generation_of_capability(double capability)
{
    const SpecGeneration *found = &rows[G_N_ELEMENTS(rows) - 1].traits;
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const SpecGeneration *traits = &rows[i].traits;
        if (traits->compute_capability > found->compute_capability &&
            traits->compute_capability <= capability)
            found = traits;
    }
    return found;
}

bool spec_generation_same(const SpecGeneration *a, const SpecGeneration *b)
{
    return a->order == b->order && a->without_sms == b->without_sms;
}

bool spec_generation_later(const SpecGeneration *a, const SpecGeneration *b)
{
    return b->order > 0 && a->order > b->order;
}

/* --- an accelerator's own --- */

static const char *const attention_default_list[] = {"attention", "attention_since_hopper",
                                                     "attention_since_blackwell"};
static const SpecWords attention_default_words = {"one of a framework's attention defaults",
                                                  attention_default_list,
                                                  (int)G_N_ELEMENTS(attention_default_list), 0};

static const char *const chip_list[] = {"gpu", "tpu", "trainium", "gaudi", "wafer", "other"};
const SpecWords spec_words_chip = {"a kind of chip", chip_list, (int)G_N_ELEMENTS(chip_list), 0};

static bool read_like(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int row = 0;
    (void)target; /* spec_read_generation() has started from it */
    return spec_read_word(context, &spec_words_generation, node, &row, error);
}

#define FLAG(member, text) SPEC_F_BOOL(SpecGeneration, member, NULL, 0, text)

static const SpecField generation_fields[] = {
    {.key = "like",
     .type = SPEC_TYPE_CUSTOM,
     .words = &spec_words_generation,
     .read = read_like,
     .form = "the generation whose traits hold where none is given",
     .schema = "{\"type\":\"string\"}",
     .help = "The known generation that this one is like: traits that are not given are those of it."},
    SPEC_F_NAME(SpecGeneration, name, NULL, "What reports call the generation."),
    SPEC_F_INT(SpecGeneration, order, 0, 1000, NULL, 0,
               "Place in the maker's line of products. Figures of kernels carry over from an earlier GPU. 0: "
               "no line."),
    FLAG(assumed, "Nobody named the generation: its traits are assumed, and reports say so."),
    FLAG(without_sms, "The chip is not made of SMs: its products are a roofline, or fill matrix_unit."),
    FLAG(foreign_kernels, "Norms run by kernels that are not CUDA's: their bytes alone count. PyTorch's "
                          "forward is translated."),
    SPEC_F_INT(SpecGeneration, nccl_row, 0, 3, NULL, 0,
               "Row of NCCL's tuning tables: 0 Volta, 1 Ampere, 2 Hopper, 3 Blackwell."),
    FLAG(multicast, "Scale-up links copy to several GPUs: recipes give tensor ranks user buffers."),
    FLAG(two_sm_tiles, "Two SMs may share a tile of a product."),
    FLAG(either_order, "8-bit products take operands in either order; else casts write transposes too."),
    FLAG(small_pieces_leave_tensor_cores,
         "16-bit products with a size that 8 does not divide run on CUDA cores at the rate of fp32."),
    SPEC_F_DOUBLE(SpecGeneration, sm_flops_per_clock, ORR_UNIT_NONE, 0, 1e6, NULL, 0,
                  "Dense 16-bit FLOPs of an SM in a clock, for products of unaligned rows. 0: they cost "
                  "nothing more."),
    SPEC_F_DOUBLE(SpecGeneration, narrow_cache_per_clock, ORR_UNIT_NONE, 0, 1e6, NULL, 0,
                  "Numbers of an 8-bit cache that attention widens on an SM in a clock, while a token is "
                  "written. 0: as many as memory brings."),
    SPEC_F_WORD(SpecGeneration, attention_default, &attention_default_words, NULL, 0,
                "Key of a framework's defaults that names the attention kernel where a scenario does not."),
    FLAG(assembly_attention, "Where software takes cuDNN's attention on later NVIDIA GPUs, it takes AITER's "
                             "assembly here (flash3)."),
    FLAG(late_latent_heads,
         "Early cuDNN has no kernels for latent attention on it (framework.kernels.cudnn)."),
    FLAG(fused_grouped_experts,
         "Kernels that fuse experts' products with activation and cast exist for mxfp8."),
    FLAG(free_queues,
         "Overlap of tensor-parallel communication works without CUDA_DEVICE_MAX_CONNECTIONS=1."),
    SPEC_F_INT(SpecGeneration, cudnn_query_tokens, 0, 65536, NULL, 0,
               "Queries of a thread block of cuDNN's attention, where calibration starts. 0: the default."),
    FLAG(sheet_below_highest_clock,
         "Data sheets state the peak below the highest clock: calibration may fit more than the peak."),
    SPEC_F_WORD(SpecGeneration, scale_up_topology, &spec_words_topology, NULL, 0,
                "How GPUs of the reference node are joined, where calibration has to assume it."),
    SPEC_F_INT(SpecGeneration, compute_capability, 0, 1000, NULL, 0,
               "CUDA's compute capability times ten, by which a measured GPU without a preset is recognised. "
               "0: none."),
    SPEC_F_WORD(SpecGeneration, chip, &spec_words_chip, NULL, 0,
                "Kind of chip, which decides what programs run on it (framework.kernels.chips)."),
};
SPEC_TABLE(spec_table_generation, "accelerator.generation", "What chips of one generation have in common.",
           generation_fields);

static char *row_names(void)
{
    GString *names = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", rows[i].name);
    return g_string_free(names, FALSE);
}

/* The row that a text names; NULL with an error that says what would work. */
static const SpecGeneration *row_of(const SpecReadContext *context, const OrrJson *node, GError **error)
{
    const char *word = orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
    const SpecGeneration *found = spec_generation(word);
    if (found != NULL)
        return found;
    const char *list[G_N_ELEMENTS(rows)];
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        list[i] = rows[i].name;
    const char *near = orr_nearest(word, list, (int)G_N_ELEMENTS(rows));
    g_autofree char *names = row_names();
    const Row *latest = &rows[0];
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].traits.order > latest->traits.order)
            latest = &rows[i];
    if (near != NULL)
        spec_read_fail(context, node, error, "is not a known generation; did you mean \"%s\"?", near);
    else
        spec_read_fail(context, node, error,
                       "is not a known generation; give one of %s, or an object such as {\"like\": \"%s\"} "
                       "with the traits that differ",
                       names, latest->name);
    return NULL;
}

bool spec_read_generation(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecGeneration *generation = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT) {
        const SpecGeneration *row = row_of(context, node, error);
        if (row != NULL)
            *generation = *row;
        return row != NULL;
    }
    const OrrJson *like = orr_json_member(node, "like");
    const SpecGeneration *row = like != NULL ? row_of(context, like, error) : NULL;
    if (like != NULL && row == NULL)
        return false;
    if (row == NULL && !context->partial) {
        g_autofree char *names = row_names();
        return spec_read_fail(context, NULL, error, "names no generation; add \"like\" with one of %s",
                              names);
    }
    if (row != NULL) {
        *generation = *row;
        generation->assumed = false;
    }
    SpecReadContext inside = *context;
    inside.partial = true; /* what is left out stays as in the row */
    return spec_read_table(&inside, &spec_table_generation, node, generation, error);
}

char *spec_generation_traits(const SpecGeneration *generation)
{
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(generation_fields); i++) {
        const SpecField *field = &generation_fields[i];
        const char *place = (const char *)generation + field->offset, *comma = text->len > 0 ? ", " : "";
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        if (field->type == SPEC_TYPE_BOOL && *(const bool *)place &&
            field->offset != offsetof(SpecGeneration, assumed))
            g_string_append_printf(text, "%s%s", comma, field->key);
        else if (field->type == SPEC_TYPE_INT && *(const int *)(const void *)place != 0)
            g_string_append_printf(text, "%s%s %d", comma, field->key, *(const int *)(const void *)place);
        else if (field->type == SPEC_TYPE_DOUBLE && *(const double *)(const void *)place > 0)
            g_string_append_printf(
                text, "%s%s %s", comma, field->key,
                g_ascii_formatd(number, sizeof number, "%.6g", *(const double *)(const void *)place));
        else if (field->type == SPEC_TYPE_WORD)
            g_string_append_printf(text, "%s%s %s", comma, field->key,
                                   spec_word(field->words, *(const int *)(const void *)place));
    }
    return g_string_free(text, FALSE);
}
