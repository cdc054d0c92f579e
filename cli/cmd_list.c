/* cli/cmd_list.c - orrery list: presets, schedules and collectives with their key figures and sources. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/list_examples.h"
#include "cli/listing.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "costmodel/params.h"
#include "network/libraries.h"
#include "network/topology.h"
#include "schedule/schedule.h"
#include "spec/load.h"
#include "spec/resolve.h"

typedef struct ListKind {
    const char *name;
    const char *what;
    const CliColumn *columns;
    int count;
    bool (*fill)(const struct ListKind *kind, CliListing *listing, GError **error);
    const char *const *places; /* paths of the columns in a preset; NULL: their keys */
    const char *folder;        /* of scenarios/; NULL: the name */
} ListKind;

/* --- presets: members of the files, as they stand --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of scenarios/KIND/NAME.json in order of name. */
static GPtrArray *preset_paths(const char *kind, GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(error);
    if (scenarios == NULL)
        return NULL;
    g_autofree char *folder = g_build_filename(scenarios, kind, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "%s: cannot open the folder of presets", folder);
        return NULL;
    }
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (const char *file = g_dir_read_name(dir); file != NULL; file = g_dir_read_name(dir)) {
        if (g_str_has_suffix(file, ".json") && file[0] != '.')
            g_ptr_array_add(paths, g_build_filename(folder, file, NULL));
    }
    qsort(paths->pdata, paths->len, sizeof(void *), by_name);
    return paths;
}

static const OrrJson *member_at(const OrrJson *object, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (char **key = keys; *key != NULL && object != NULL; key++)
        object = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, *key) : NULL;
    return object;
}

static OrrUnit unit_of(CliShow show)
{
    static const OrrUnit units[] = {
        [CLI_SHOW_TEXT] = ORR_UNIT_NONE,
        [CLI_SHOW_WHOLE] = ORR_UNIT_NONE,
        [CLI_SHOW_COUNT] = ORR_UNIT_NONE,
        [CLI_SHOW_BYTES] = ORR_UNIT_BYTES,
        [CLI_SHOW_BYTES_PER_S] = ORR_UNIT_BYTES_PER_S,
        [CLI_SHOW_FLOPS_PER_S] = ORR_UNIT_FLOPS_PER_S,
        [CLI_SHOW_SECONDS] = ORR_UNIT_SECONDS,
        [CLI_SHOW_WATTS] = ORR_UNIT_WATTS,
    };
    return units[show];
}

/* A member as a cell; a quantity may be text with a unit. */
static void add_member(CliListing *listing, const OrrJson *node, CliShow show)
{
    const OrrJsonType type = node != NULL ? orr_json_type(node) : ORR_JSON_NULL;
    double value = 0.0;
    if (type == ORR_JSON_NUMBER)
        cli_listing_number(listing, orr_json_number(node));
    else if (type == ORR_JSON_TEXT && show != CLI_SHOW_TEXT &&
             orr_parse_quantity(orr_json_text(node), unit_of(show), &value, NULL))
        cli_listing_number(listing, value);
    else if (type == ORR_JSON_TEXT)
        cli_listing_text(listing, orr_json_text(node));
    else if (type == ORR_JSON_BOOL)
        cli_listing_text(listing, orr_json_bool(node) ? "yes" : "no");
    else
        cli_listing_number(listing, NAN);
}

/* What no file says: the parameters of a model. */
static bool add_computed(CliListing *listing, const char *key, const char *path, GError **error)
{
    SpecModel model;
    if (!spec_load_model(path, &model, error))
        return false;
    cli_listing_number(listing, cost_parameters(&model, 0, strcmp(key, "active_parameters") == 0));
    return true;
}

static bool is_computed(const char *key)
{
    return strcmp(key, "parameters") == 0 || strcmp(key, "active_parameters") == 0;
}

/* A preset with what it takes over from the one that it starts from. */
static OrrJsonDoc *read_preset(const char *kind, const char *path, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
    if (root == NULL || orr_json_type(root) != ORR_JSON_OBJECT || orr_json_member(root, "preset") == NULL)
        return doc;
    orr_json_free(doc);
    return spec_resolve_preset(kind, path, path, kind, NULL, NULL, error);
}

#define SPARSE "sparse_peak_flops_per_s."

/* The peak of sparse products, where the preset's sheet has one. */
static void add_sparse(CliListing *listing, const OrrJson *preset, const char *dtype)
{
    const OrrJson *peaks = orr_json_member(preset, "peak_flops_per_s");
    const double dense = orr_json_number_of(peaks, dtype, NAN),
                 gain = orr_json_number_of(preset, "sparsity_gain", NAN);
    cli_listing_number(listing, dense * gain);
}

static bool fill_presets(const ListKind *kind, CliListing *listing, GError **error)
{
    g_autoptr(GPtrArray) paths = preset_paths(kind->folder != NULL ? kind->folder : kind->name, error);
    if (paths == NULL)
        return false;
    for (guint i = 0; i < paths->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        OrrJsonDoc *doc = read_preset(kind->folder != NULL ? kind->folder : kind->name, path, error);
        if (doc == NULL)
            return false;
        const OrrJson *root = orr_json_root(doc);
        bool ok = true;
        if (member_at(root, "renamed_to") != NULL) {
            orr_json_free(doc);
            continue;
        }
        for (int column = 0; column < kind->count && ok; column++) {
            const char *key = kind->columns[column].key;
            const char *place = kind->places != NULL ? kind->places[column] : key;
            if (strcmp(key, "source") == 0)
                cli_listing_source(listing, member_at(root, key));
            else if (g_str_has_prefix(key, SPARSE))
                add_sparse(listing, root, key + strlen(SPARSE));
            else if (is_computed(key))
                ok = add_computed(listing, key, path, error);
            else
                add_member(listing, member_at(root, place), kind->columns[column].show);
        }
        orr_json_free(doc);
        if (!ok)
            return false;
    }
    return true;
}

static const CliColumn model_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"parameters", "parameters", CLI_SHOW_COUNT},
    {"active_parameters", "active", CLI_SHOW_COUNT},
    {"layers", "layers", CLI_SHOW_WHOLE},
    {"hidden", "hidden", CLI_SHOW_WHOLE},
    {"heads", "heads", CLI_SHOW_WHOLE},
    {"kv_heads", "kv", CLI_SHOW_WHOLE},
    {"moe.experts", "experts", CLI_SHOW_WHOLE},
    {"vocab", "vocab", CLI_SHOW_WHOLE},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn accelerator_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"memory_bytes", "memory", CLI_SHOW_BYTES},
    {"memory_bytes_per_s", "bandwidth", CLI_SHOW_BYTES_PER_S},
    {"peak_flops_per_s.fp16", "fp16 dense", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.bf16", "bf16 dense", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.fp8", "fp8 dense", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.int8", "int8 dense", CLI_SHOW_FLOPS_PER_S},
    {"scale_up_bytes_per_s", "scale-up", CLI_SHOW_BYTES_PER_S},
    {"power_w", "power", CLI_SHOW_WATTS},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn peak_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"fp64_flops_per_s", "fp64", CLI_SHOW_FLOPS_PER_S},
    {"fp64_tensor_flops_per_s", "fp64 tensor", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.fp32", "fp32", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.tf32", "tf32 dense", CLI_SHOW_FLOPS_PER_S},
    {SPARSE "tf32", "sparse", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.fp16", "fp16 dense", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.bf16", "bf16 dense", CLI_SHOW_FLOPS_PER_S},
    {SPARSE "bf16", "sparse", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.fp8", "fp8 dense", CLI_SHOW_FLOPS_PER_S},
    {SPARSE "fp8", "sparse", CLI_SHOW_FLOPS_PER_S},
    {"peak_flops_per_s.fp4", "fp4 dense", CLI_SHOW_FLOPS_PER_S},
};

static const CliColumn cluster_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"accelerator", "accelerator", CLI_SHOW_TEXT},
    {"gpus_per_node", "GPUs a node", CLI_SHOW_WHOLE},
    {"nodes", "nodes", CLI_SHOW_WHOLE},
    {"scale_up_domain_gpus", "scale-up domain", CLI_SHOW_WHOLE},
    {"scale_out_bytes_per_s_per_gpu", "scale-out a GPU", CLI_SHOW_BYTES_PER_S},
    {"topology", "topology", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn framework_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"states", "states", CLI_SHOW_TEXT},
    {"gradient_dtype", "gradients", CLI_SHOW_TEXT},
    {"loss", "loss", CLI_SHOW_TEXT},
    {"bucket_bytes", "bucket", CLI_SHOW_BYTES},
    {"kernel_host_s", "host a kernel", CLI_SHOW_SECONDS},
    {"context_bytes", "context", CLI_SHOW_BYTES},
    {"source", "source", CLI_SHOW_TEXT},
};
/* Where a profile has them. */
static const char *const framework_places[G_N_ELEMENTS(framework_columns)] = {"name",
                                                                              "optimizer.states",
                                                                              "data_parallel.gradient_dtype",
                                                                              "loss.kernel",
                                                                              "data_parallel.bucket_bytes",
                                                                              "host.kernel_host_s",
                                                                              "allocator.context_bytes",
                                                                              "source"};

/* --- tables of the program --- */

static const CliColumn schedule_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"virtual_stages", "virtual stages", CLI_SHOW_TEXT},
    {"help", "what it does", CLI_SHOW_TEXT},
};

static bool fill_schedules(const ListKind *kind, CliListing *listing, GError **error)
{
    (void)kind;
    (void)error;
    int count = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        char chunks[16];
        g_snprintf(chunks, sizeof chunks, "always %d", schedules[i].fixed_chunks);
        cli_listing_text(listing, schedules[i].name);
        cli_listing_text(listing, schedules[i].fixed_chunks == 0 ? "any" : chunks);
        cli_listing_text(listing, schedules[i].help);
    }
    return true;
}

static const CliColumn collective_columns[] = {
    {"op", "collective", CLI_SHOW_TEXT},         {"name", "algorithm", CLI_SHOW_TEXT},
    {"bus_factor", "bus factor", CLI_SHOW_TEXT}, {"formula", "seconds", CLI_SHOW_TEXT},
    {"help", "what it does", CLI_SHOW_TEXT},
};

static bool fill_collectives(const ListKind *kind, CliListing *listing, GError **error)
{
    (void)kind;
    (void)error;
    int count = 0;
    const NetAlgorithm *algorithms = net_algorithms(&count);
    for (int i = 0; i < count; i++) {
        const double factor = net_op_bus_factor(algorithms[i].op, 2); /* 1/2 for (n-1)/n, 1 for twice that */
        const bool twice = algorithms[i].op == NET_ALL_REDUCE;
        cli_listing_text(listing, net_op_name(algorithms[i].op));
        cli_listing_text(listing, algorithms[i].name);
        cli_listing_text(listing, twice ? "2(n-1)/n" : (factor < 1 ? "(n-1)/n" : "1"));
        cli_listing_text(listing, algorithms[i].formula);
        cli_listing_text(listing, algorithms[i].help);
    }
    return true;
}

static const CliColumn library_columns[] = {
    {"name", "library", CLI_SHOW_TEXT},      {"op", "collective", CLI_SHOW_TEXT},
    {"when", "when", CLI_SHOW_TEXT},         {"algorithm", "algorithm", CLI_SHOW_TEXT},
    {"decision", "decision", CLI_SHOW_TEXT}, {"note", "note", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
};

/* In order, the first that applies and is taken decides; last a line for what is left to another library. */
static bool fill_libraries(const ListKind *kind, CliListing *listing, GError **error)
{
    (void)kind;
    (void)error;
    int count = 0;
    const NetLibrary *libraries = net_libraries(&count);
    for (const NetLibrary *library = libraries; library < libraries + count; library++) {
        for (int i = 0; i < library->rule_count; i++) {
            const NetLibraryRule *rule = &library->rules[i];
            g_autofree char *when = net_library_when(rule);
            const char *const cells[] = {library->name,
                                         net_op_name(rule->op),
                                         when,
                                         rule->algorithm,
                                         rule->chosen ? "taken" : "weighed",
                                         rule->note,
                                         library->source};
            for (gsize cell = 0; cell < G_N_ELEMENTS(cells); cell++)
                cli_listing_text(listing, cells[cell]);
        }
        const char *const rest[] = {library->name, "all others", "else",         NULL,
                                    "taken",       NULL,         library->source};
        for (gsize cell = 0; library->base != NULL && cell < G_N_ELEMENTS(rest); cell++)
            cli_listing_text(listing, cell == 3 ? library->base->name : rest[cell]);
    }
    return true;
}

static const CliColumn workload_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn jitter_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"slow_nodes_frac", "slow nodes", CLI_SHOW_TEXT},
    {"slow_nodes_by_frac", "slower by", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn faults_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"gpu_mtbf_s", "of a GPU", CLI_SHOW_SECONDS},
    {"gpu_memory_mtbf_s", "of its memory", CLI_SHOW_SECONDS},
    {"node_mtbf_s", "of a host", CLI_SHOW_SECONDS},
    {"network_mtbf_s", "of its network", CLI_SHOW_SECONDS},
    {"software_mtbf_s", "of its software", CLI_SHOW_SECONDS},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn storage_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"read_bytes_per_s", "read", CLI_SHOW_BYTES_PER_S},
    {"write_bytes_per_s", "write", CLI_SHOW_BYTES_PER_S},
    {"shared_by", "shared by", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
};

static const CliColumn topology_columns[] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"bisection", "bisection, one way", CLI_SHOW_TEXT},
    {"help", "what it is", CLI_SHOW_TEXT},
};

/* Generators, then the files of nodes and links. */
static bool fill_topologies(const ListKind *kind, CliListing *listing, GError **error)
{
    int count = 0;
    const NetTopologyRow *rows = net_topologies(&count);
    for (int i = 0; i < count; i++) {
        cli_listing_text(listing, rows[i].name);
        cli_listing_text(listing, rows[i].bisection);
        cli_listing_text(listing, rows[i].help);
    }
    g_autoptr(GPtrArray) paths = preset_paths(kind->name, error);
    for (guint i = 0; paths != NULL && i < paths->len; i++) {
        OrrJsonDoc *doc = orr_json_read_file(g_ptr_array_index(paths, i), error);
        if (doc == NULL)
            return false;
        cli_listing_text(listing, orr_json_text_of(orr_json_root(doc), "name", "-"));
        cli_listing_text(listing, "as wired");
        cli_listing_text(listing, orr_json_text_of(orr_json_root(doc), "note", "-"));
        orr_json_free(doc);
    }
    return paths != NULL;
}

static bool fill_examples(const ListKind *kind, CliListing *listing, GError **error)
{
    return cli_list_examples(kind->name, listing, error);
}

#define COLUMNS(of) of, (int)G_N_ELEMENTS(of)
static const ListKind kinds[] = {
    {"models", "model shapes", COLUMNS(model_columns), fill_presets, NULL, NULL},
    {"accelerators", "GPUs and other accelerators", COLUMNS(accelerator_columns), fill_presets, NULL, NULL},
    {"peaks", "what data sheets print of accelerators: fp64, dense and sparse peaks", COLUMNS(peak_columns),
     fill_presets, NULL, "accelerators"},
    {"clusters", "machines: accelerators, nodes, links", COLUMNS(cluster_columns), fill_presets, NULL, NULL},
    {"frameworks", "what the training software does", COLUMNS(framework_columns), fill_presets,
     framework_places, NULL},
    {"schedules", "pipeline schedules", COLUMNS(schedule_columns), fill_schedules, NULL, NULL},
    {"collectives", "collective operations and their algorithms", COLUMNS(collective_columns),
     fill_collectives, NULL, NULL},
    {"libraries", "what communication libraries take, by operation, ranks, nodes and size",
     COLUMNS(library_columns), fill_libraries, NULL, NULL},
    {"topologies", "fabrics: what joins GPUs and nodes", COLUMNS(topology_columns), fill_topologies, NULL,
     NULL},
    {"faults", "what fails: mean time between failures of one part", COLUMNS(faults_columns), fill_presets,
     NULL, NULL},
    {"storage", "where checkpoints go", COLUMNS(storage_columns), fill_presets, NULL, NULL},
    {"jitter", "GPUs and nodes slower than others", COLUMNS(jitter_columns), fill_presets, NULL, NULL},
    {"workloads", "loops of reinforcement learning: roles and phases", COLUMNS(workload_columns),
     fill_presets, NULL, NULL},
    {"examples", "scenarios to begin with: orrery run gpt3-175b", cli_example_columns, CLI_EXAMPLE_COLUMNS,
     fill_examples, NULL, NULL},
};

char *cli_list_kinds(const char *between)
{
    const char *names[G_N_ELEMENTS(kinds) + 1] = {NULL};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        names[i] = kinds[i].name;
    return g_strjoinv(between, (char **)names);
}

static const ListKind *find_kind(const char *word, GError **error)
{
    const char *names[G_N_ELEMENTS(kinds)];
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].name, word) == 0)
            return &kinds[i];
        names[i] = kinds[i].name;
    }
    const char *nearest = orr_nearest(word, names, (int)G_N_ELEMENTS(names));
    g_autofree char *all = cli_list_kinds(", ");
    g_autofree char *hint = nearest != NULL ? g_strdup_printf("did you mean %s?", nearest)
                                            : g_strdup_printf("%s can be listed", all);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "list: nothing is called \"%s\"; %s", word, hint);
    return NULL;
}

static bool list_kind(const ListKind *kind, CliFormat format, GString *out, GError **error)
{
    CliListing *listing = cli_listing_new(kind->columns, kind->count);
    const bool ok = kind->fill(kind, listing, error);
    if (ok)
        cli_listing_write(listing, format, out);
    cli_listing_free(listing);
    return ok;
}

static bool run(const CliArgs *args, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (args->words != NULL) {
        const ListKind *kind = find_kind(args->words[0], error);
        if (kind == NULL || !list_kind(kind, args->format, out, error))
            return false;
        return cli_output_write(args->output, out, error);
    }
    static const CliColumn columns[] = {{"name", "orrery list", CLI_SHOW_TEXT}, {"what", "", CLI_SHOW_TEXT}};
    CliListing *listing = cli_listing_new(columns, 2);
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        cli_listing_text(listing, kinds[i].name);
        cli_listing_text(listing, kinds[i].what);
    }
    cli_listing_write(listing, args->format, out);
    cli_listing_free(listing);
    return cli_output_write(args->output, out, error);
}

const CliCommand cli_command_list = {
    .name = "list",
    .usage = "[KIND]",
    .summary = "presets, schedules and collectives, with key figures and sources",
    .help = "Lists what a scenario can name: models, accelerators (and peaks, their data sheets), "
            "clusters, frameworks, schedules, collectives, libraries, topologies, faults, storage, "
            "jitter, workloads and examples. Without a kind the kinds are listed. A source in "
            "brackets "
            "is a key of docs/SOURCES.md; \"unverified\" counts the figures whose source could not be "
            "confirmed. --format json gives the source of every figure in full. Of a library's lines the "
            "first that is taken decides; what is weighed is left to a tuner or a user. The bus factor "
            "of a collective is bus bandwidth over algorithm bandwidth for n ranks.\n\n"
            "  orrery list models\n"
            "  orrery list accelerators --format csv\n",
    .takes = CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .max_words = 1,
    .args_size = sizeof(CliArgs),
    .run = run,
};
