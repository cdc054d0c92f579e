/* api/machines.c - a file of machines, each with its cluster, training program, region and terms of payment.
 *
 * A term is an hourly price: on demand; reserved, which commits to years; owned, a price of hardware spread over years,
 * with electricity beside it; spot, whose nodes are taken back. Every term of a machine is one of the machines side by side.
 */
#include <math.h>
#include <string.h>

#include "api/kinds_internal.h"
#include "campaign/effective.h"
#include "plan/plan.h"
#include "spec/fields_internal.h"
#include "base/file.h"
#include "base/text.h"
#include "spec/resolve.h"

enum { MOST_TERMS = 8 };

typedef enum { TERM_ON_DEMAND, TERM_RESERVED, TERM_SPOT, TERM_OWNED, TERM_COUNT } TermKind;

static const char *const term_words[TERM_COUNT] = {"on-demand", "reserved", "spot", "owned"};
static const SpecWords words_term = {"a term", term_words, TERM_COUNT, 0};

typedef struct Term {
    TermKind kind;
    double usd_per_gpu_hour, years, usd_per_gpu, upkeep_frac, interruption_mtbf_s;
    bool paid_in_full;
} Term;

typedef struct Region {
    double co2_g_per_kwh, pue, usd_per_kwh; /* 0: not given */
} Region;

typedef struct Machine {
    char name[SPEC_NAME_SIZE], region[SPEC_NAME_SIZE];
    char *cluster, *framework; /* JSON; framework NULL: the scenario's */
    Term terms[MOST_TERMS];
    int term_count; /* 0: at the price that the cluster has */
} Machine;

typedef struct Machines {
    const char *file;
    OrrJsonDoc *doc;
    GArray *list;
} Machines;

#define PRICE(member, text) SPEC_F_DOUBLE(Term, member, ORR_UNIT_USD, 0, 1e9, "0", 0, text)

static const SpecField term_fields[] = {
    {.key = "term",
     .type = SPEC_TYPE_WORD,
     .offset = offsetof(Term, kind),
     .words = &words_term,
     .flags = SPEC_FIELD_REQUIRED,
     .help = "How it is paid."},
    PRICE(usd_per_gpu_hour, "Price of a GPU-hour."),
    PRICE(usd_per_gpu, "owned: price of a GPU with its share of everything that is bought with it."),
    SPEC_F_DOUBLE(Term, years, ORR_UNIT_NONE, 0, 100, "0", 0, "reserved, owned: years of it."),
    SPEC_F_DOUBLE(Term, upkeep_frac, ORR_UNIT_NONE, 0, 10, "0", 0, "owned: of that price each year."),
    SPEC_F_DOUBLE(Term, interruption_mtbf_s, ORR_UNIT_SECONDS, 0, 1e12, "0", 0,
                  "spot: mean time until a node is taken back."),
    SPEC_F_BOOL(Term, paid_in_full, "false", 0, "reserved, owned: nobody else uses the rest."),
};
static SPEC_TABLE(table_term, "a term", "", term_fields);

static const SpecField region_fields[] = {
    SPEC_F_DOUBLE(Region, co2_g_per_kwh, ORR_UNIT_NONE, 0, 1e4, "0", 0, "Grams of CO2 of a kWh."),
    SPEC_F_DOUBLE(Region, pue, ORR_UNIT_NONE, 1, 10, NULL, SPEC_FIELD_DERIVED,
                  "Facility power over IT power."),
    SPEC_F_DOUBLE(Region, usd_per_kwh, ORR_UNIT_USD, 0, 1e3, "0", 0, "Price of electricity, where owned."),
};
static SPEC_TABLE(table_region, "a region", "", region_fields);

/* --- reading --- */

static bool read_terms(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
static bool read_cluster(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
static bool read_framework(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

static const SpecField machine_fields[] = {
    SPEC_F_NAME(Machine, name, "\"\"", "What pages call it."),
    {.key = "cluster",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_REQUIRED,
     .read = read_cluster,
     .help = "As in a scenario, without nodes."},
    {.key = "framework", .type = SPEC_TYPE_CUSTOM, .read = read_framework, .help = "As in a scenario."},
    SPEC_F_NAME(Machine, region, "\"\"", "One of \"regions\"."),
    {.key = "terms", .type = SPEC_TYPE_CUSTOM, .read = read_terms, .help = "Ways to pay."},
};
static SPEC_TABLE(table_machine, "a machine", "", machine_fields);

/* What a term needs, and what it does nothing with. */
static bool check_term(const SpecReadContext *context, const Term *term, GError **error)
{
    const char *word = term_words[term->kind];
    const bool owned = term->kind == TERM_OWNED, spot = term->kind == TERM_SPOT,
               lasts = owned || term->kind == TERM_RESERVED;
    const struct {
        const char *key;
        double value;
        bool needed, taken;
    } rows[] = {{"usd_per_gpu_hour", term->usd_per_gpu_hour, !owned, !owned},
                {"usd_per_gpu", term->usd_per_gpu, owned, owned},
                {"years", term->years, lasts, lasts},
                {"upkeep_frac", term->upkeep_frac, false, owned},
                {"interruption_mtbf_s", term->interruption_mtbf_s, spot, spot},
                {"paid_in_full", term->paid_in_full, false, lasts}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].needed && !(rows[i].value > 0))
            return spec_read_fail(context, NULL, error, "\"%s\" needs %s above 0", word, rows[i].key);
        if (!rows[i].taken && rows[i].value > 0)
            return spec_read_fail(context, NULL, error, "%s does nothing for \"%s\"; leave it out",
                                  rows[i].key, word);
    }
    return true;
}

static bool read_terms(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    Machine *machine = target;
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : 0;
    if (count < 1 || count > MOST_TERMS)
        return spec_read_fail(context, NULL, error,
                              "is not a list of 1 to %d terms; write [{\"term\": \"on-demand\", "
                              "\"usd_per_gpu_hour\": 3.5}]",
                              MOST_TERMS);
    const gsize length = context->path->len;
    bool ok = true;
    for (const OrrJson *item = orr_json_first(node); ok && item != NULL; item = orr_json_next(item)) {
        Term *term = &machine->terms[machine->term_count];
        g_string_append_printf(context->path, "[%d]", machine->term_count++);
        ok = spec_read_table(context, &table_term, item, term, error) && check_term(context, term, error);
        if (ok)
            g_string_truncate(context->path, length);
    }
    return ok;
}

static bool read_cluster(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    Machine *machine = target;
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        machine->cluster = orr_json_dump(node);
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_TEXT)
        return spec_read_fail(context, node, error,
                              "is %s; give a cluster's name, a path or an object as in a scenario",
                              orr_json_type_name(node));
    g_autofree char *folder = g_path_get_dirname(context->where), *file = NULL;
    const char *name = orr_json_text(node);
    if (spec_is_path(name))
        name = file = g_canonicalize_filename(name, folder);
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "preset", name);
    orr_jw_end(&w, '}');
    machine->cluster = g_strdup(text->str);
    return true;
}

static bool read_framework(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    ((Machine *)target)->framework = orr_json_dump(node);
    return orr_json_type(node) == ORR_JSON_TEXT || orr_json_type(node) == ORR_JSON_OBJECT ||
           spec_read_fail(context, node, error, "is %s; give a framework's name, or an object",
                          orr_json_type_name(node));
}

static bool read_machine(SpecReadContext *context, const OrrJson *item, GArray *list, GError **error)
{
    Machine machine = {.name = ""};
    g_string_printf(context->path, "machines[%u]", list->len);
    const bool ok = spec_read_table(context, &table_machine, item, &machine, error);
    g_array_append_val(list, machine);
    if (ok && machine.name[0] == '\0')
        return spec_read_fail(context, NULL, error, "has no \"name\"; give what pages are to call it");
    for (guint i = 0; ok && i + 1 < list->len; i++)
        if (g_str_equal(g_array_index(list, Machine, i).name, machine.name))
            return spec_read_fail(context, NULL, error,
                                  "is called \"%s\" as machines[%u] is; give it a name of its own",
                                  machine.name, i);
    return ok;
}

static bool read_members(SpecReadContext *context, Machines *machines, GError **error)
{
    const OrrJson *root = orr_json_root(machines->doc);
    if (orr_json_type(root) != ORR_JSON_OBJECT)
        return spec_read_fail(context, root, error,
                              "is %s; write {\"machines\": [{\"name\": ..., \"cluster\": ...}]}",
                              orr_json_type_name(root));
    for (const OrrJson *member = orr_json_first(root); member != NULL; member = orr_json_next(member)) {
        static const char *const known[] = {"schema", "source", "regions", "machines"};
        if (!g_strv_contains((const char *const[]){"schema", "source", "regions", "machines", NULL},
                             orr_json_key(member))) {
            const char *near = orr_nearest(orr_json_key(member), known, (int)G_N_ELEMENTS(known));
            return spec_read_fail(context, NULL, error, "%s: unknown key; a file of machines knows %s%s%s",
                                  orr_json_key(member), near != NULL ? "\"" : "",
                                  near != NULL ? near : "schema, source, regions, machines",
                                  near != NULL ? "\"" : "");
        }
    }
    const OrrJson *list = orr_json_member(root, "machines");
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST || orr_json_count(list) == 0)
        return spec_read_fail(
            context, NULL, error,
            "machines: is not a list of machines; write {\"machines\": [{\"name\": \"ours\", "
            "\"cluster\": \"dgx-h100\"}]}");
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item))
        if (!read_machine(context, item, machines->list, error))
            return false;
    return true;
}

static void machine_clear(void *data)
{
    Machine *machine = data;
    g_free(machine->cluster);
    g_free(machine->framework);
}

/* A path, or the name of a file in scenarios/machines. */
static char *path_of(const char *file, GError **error)
{
    if (strchr(file, G_DIR_SEPARATOR) != NULL || g_str_has_suffix(file, ".json") || strcmp(file, "-") == 0 ||
        g_file_test(file, G_FILE_TEST_EXISTS))
        return g_strdup(file);
    g_autofree char *scenarios = orr_scenarios_dir(NULL), *name = g_strconcat(file, ".json", NULL);
    g_autofree char *folder = scenarios != NULL ? g_build_filename(scenarios, "machines", NULL) : NULL;
    g_autofree char *path = folder != NULL ? g_build_filename(folder, name, NULL) : NULL;
    if (path != NULL && g_file_test(path, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&path);
    g_autoptr(GString) known = g_string_new(NULL);
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    for (const char *entry = dir != NULL ? g_dir_read_name(dir) : NULL; entry != NULL;
         entry = g_dir_read_name(dir))
        if (g_str_has_suffix(entry, ".json"))
            g_string_append_printf(known, "%s%.*s", known->len > 0 ? ", " : "",
                                   (int)(strlen(entry) - strlen(".json")), entry);
    orr_fail(
        error, ORR_ERROR_INPUT,
        "--machines: \"%.80s\" is not a file of machines; give a path, or a name of those that ship: %s; "
        "clusters by name go to --cluster",
        file, known->str);
    return NULL;
}

static bool read_file(const char *file, Machines *machines, GError **error)
{
    SpecReadContext context;
    *machines = (Machines){.file = file, .list = g_array_new(FALSE, TRUE, sizeof(Machine))};
    g_array_set_clear_func(machines->list, machine_clear);
    machines->doc = orr_json_read_file(file, error);
    if (machines->doc == NULL)
        return false;
    spec_read_context_init(&context, file, &table_machine, false, NULL);
    const bool ok = read_members(&context, machines, error);
    spec_read_context_clear(&context);
    return ok;
}

/* --- terms of machines --- */

static void set_number(OrrJsonDoc *doc, const char *key, double value, bool over)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (value > 0 && (over || orr_json_member(orr_json_root(doc), key) == NULL))
        orr_json_set(doc, key, g_ascii_dtostr(text, sizeof text, value), NULL);
}

static bool find_region(const Machines *machines, const Machine *machine, Region *ret_region, GError **error)
{
    const OrrJson *regions = orr_json_member(orr_json_root(machines->doc), "regions");
    SpecReadContext context;
    *ret_region = (Region){0};
    if (machine->region[0] == '\0')
        return true;
    const OrrJson *region = regions != NULL && orr_json_type(regions) == ORR_JSON_OBJECT
                                ? orr_json_member(regions, machine->region)
                                : NULL;
    if (region == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: %s: region \"%s\" is not one of \"regions\"; write {\"regions\": {\"%s\": "
                        "{\"co2_g_per_kwh\": 300}}}",
                        machines->file, machine->name, machine->region, machine->region);
    spec_read_context_init(&context, machines->file, &table_region, false, NULL);
    g_string_printf(context.path, "regions.%s", machine->region);
    const bool ok = spec_read_table(&context, &table_region, region, ret_region, error);
    spec_read_context_clear(&context);
    return ok;
}

/* Of a term: of hardware that is owned the share of its price, and what keeps it running. */
static double hourly_usd(const Term *term)
{
    return term->kind == TERM_OWNED
               ? term->usd_per_gpu * (1 / term->years + term->upkeep_frac) / PLAN_YEAR_HOURS
               : term->usd_per_gpu_hour;
}

static PlanTerms plan_terms(const Term *term)
{
    g_autofree char *name = term->years > 0 ? g_strdup_printf("%s %g year%s", term_words[term->kind],
                                                              term->years, term->years > 1 ? "s" : "")
                                            : g_strdup(term_words[term->kind]);
    return (PlanTerms){g_intern_string(name), term->years, term->paid_in_full, term->kind == TERM_ON_DEMAND};
}

/* What of a scenario is otherwise there: the program, and that nodes are taken back. */
static const ApiBase *base_of(const ApiBase *base, const Machine *machine, const Term *term,
                              const char *where, ApiKinds *kinds)
{
    g_autofree char *framework =
        machine->framework != NULL ? g_strdup_printf("execution.framework=%s", machine->framework) : NULL;
    char mtbf[G_ASCII_DTOSTR_BUF_SIZE];
    const bool spot = term != NULL && term->kind == TERM_SPOT;
    g_autofree char *taken =
        spot ? g_strdup_printf("faults.spot_mtbf_s=%s",
                               g_ascii_dtostr(mtbf, sizeof mtbf, term->interruption_mtbf_s))
             : NULL;
    const char *sets[4] = {NULL};
    int count = 0;
    if (framework != NULL)
        sets[count++] = framework;
    if (spot && !base->spec.faults.given)
        sets[count++] = "faults=" CAMPAIGN_ASSUMED_FAULTS;
    if (spot)
        sets[count++] = taken;
    return count > 0 ? api_base_add(base, where, sets, kinds) : base;
}

static bool add_term(const Machines *machines, const Machine *machine, const Term *term, const ApiBase *base,
                     const char *where, ApiKinds *kinds, GError **error)
{
    Region region;
    if (!find_region(machines, machine, &region, error))
        return false;
    g_autofree char *named = g_strdup_printf("%s: %s", machines->file, machine->name);
    OrrJsonDoc *cluster = orr_json_parse(machine->cluster, strlen(machine->cluster), named, error);
    if (cluster == NULL)
        return false;
    set_number(cluster, "co2_g_per_kwh", region.co2_g_per_kwh, false);
    set_number(cluster, "pue", region.pue, false);
    if (term != NULL)
        set_number(cluster, "usd_per_gpu_hour", hourly_usd(term), true);
    if (term != NULL && term->kind == TERM_OWNED)
        set_number(cluster, "usd_per_kwh", region.usd_per_kwh, false);
    const bool ok =
        api_kind_add(base_of(base, machine, term, where, kinds), orr_json_root(cluster), named, kinds, error);
    orr_json_free(cluster);
    if (ok) {
        ApiKind *kind = &g_array_index(kinds->list, ApiKind, kinds->list->len - 1);
        kind->terms = term != NULL ? plan_terms(term) : (PlanTerms){.name = NULL};
        kind->machine = g_intern_string(machine->name);
        if (machine->framework != NULL)
            kind->framework = g_intern_string(kind->spec->execution.framework.name);
        kind->name = term != NULL ? g_strdup_printf("%s, %s", machine->name, kind->terms.name)
                                  : g_strdup(machine->name);
    }
    return ok;
}

static bool add_machine(const Machines *machines, const Machine *machine, const ApiBase *base,
                        const char *where, ApiKinds *kinds, GError **error)
{
    bool ok = machine->term_count > 0 || add_term(machines, machine, NULL, base, where, kinds, error);
    for (int i = 0; ok && i < machine->term_count; i++)
        ok = add_term(machines, machine, &machine->terms[i], base, where, kinds, error);
    if (ok && kinds->list->len > API_KINDS_MOST)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: more than %d machines and terms side by side; leave some out, or ask several "
                        "times",
                        machines->file, API_KINDS_MOST);
    return ok;
}

bool api_machines_add(const char *file, const char *where, guint programs, ApiKinds *kinds, GError **error)
{
    Machines machines;
    g_autofree char *path = path_of(file, error);
    if (path == NULL)
        return false;
    bool ok = read_file(path, &machines, error);
    for (guint i = 0; ok && i < machines.list->len; i++) {
        const Machine *machine = &g_array_index(machines.list, Machine, i);
        const guint times = machine->framework != NULL ? 1 : programs; /* it has its own */
        for (guint p = 0; ok && p < times; p++)
            ok = add_machine(&machines, machine, g_ptr_array_index(kinds->bases, p), where, kinds, error);
    }
    orr_json_free(machines.doc);
    g_array_unref(machines.list);
    return ok;
}
