/* ledger/memory_write.c - what the memory reserve is worth on a ledger, as a table. */
#include <string.h>

#include "base/text.h"
#include "report/page.h"
#include "base/units.h"
#include "ledger/validate.h"

/* Of the rows of one framework. */
typedef struct Group {
    char framework[SPEC_NAME_SIZE];
    int rows, needs, covered, none, edge;
    double most_frac, reserve_frac, seen_frac; /* measured beyond predicted, at most; see memory.h */
} Group;

static Group *group_of(GArray *groups, const char *framework)
{
    for (guint i = 0; i < groups->len; i++)
        if (strcmp(g_array_index(groups, Group, i).framework, framework) == 0)
            return &g_array_index(groups, Group, i);
    Group group = {.most_frac = -1};
    g_strlcpy(group.framework, framework, sizeof group.framework);
    g_array_append_val(groups, group);
    return &g_array_index(groups, Group, groups->len - 1);
}

static GArray *group_rows(const Ledger *ledger)
{
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(Group));
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        if (row->framework == NULL)
            continue;
        g_autofree char *family = ledger_framework_family(row->framework);
        Group *group = group_of(groups, family);
        const double beyond_bytes = row->measured_memory_bytes - row->predicted_memory_bytes;
        const bool needs = strcmp(row->memory_kind, "allocated") == 0 && !row->memory_assumed;
        group->rows += 1;
        group->needs += needs;
        group->covered += needs && beyond_bytes <= row->reserve_bytes;
        group->none += row->memory_verdict == REPORT_MEMORY_NONE;
        group->edge += row->memory_verdict == REPORT_MEMORY_EDGE;
        group->most_frac = MAX(group->most_frac, beyond_bytes / row->capacity_bytes);
        group->reserve_frac = row->reserve_bytes / row->capacity_bytes;
        group->seen_frac = row->seen_bytes / row->capacity_bytes;
    }
    return groups;
}

static void write_groups(const GArray *groups, GString *out)
{
    enum { COLUMNS = 9 };
    static const char *const headers[COLUMNS] = {"framework",   "runs",        "seen",
                                                 "most beyond", "reserve",     "needs",
                                                 "covered",     "at the edge", "does not fit"};
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (guint i = 0; i < groups->len; i++) {
        const Group *group = &g_array_index(groups, Group, i);
        char cell[COLUMNS - 1][ORR_TEXT_SIZE];
        g_snprintf(cell[0], ORR_TEXT_SIZE, "%d", group->rows);
        g_snprintf(cell[1], ORR_TEXT_SIZE, "%.1f %%", 100 * group->seen_frac);
        g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", 100 * group->most_frac);
        g_snprintf(cell[3], ORR_TEXT_SIZE, "%.1f %%", 100 * group->reserve_frac);
        g_snprintf(cell[4], ORR_TEXT_SIZE, "%d", group->needs);
        g_snprintf(cell[5], ORR_TEXT_SIZE, "%d", group->covered);
        g_snprintf(cell[6], ORR_TEXT_SIZE, "%d", group->edge);
        g_snprintf(cell[7], ORR_TEXT_SIZE, "%d", group->none);
        orr_table_row(table, (const char *[COLUMNS]){group->framework, cell[0], cell[1], cell[2], cell[3],
                                                     cell[4], cell[5], cell[6], cell[7]});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void write_share(GString *out, const char *label, int count, int all)
{
    g_string_append_printf(out, "  %-52s %4d of %d (%.1f %%)\n", label, count, all, 100.0 * count / all);
}

void ledger_write_reserve(const Ledger *ledger, GString *out)
{
    const LedgerMemory *memory = &ledger->memory;
    if (memory->rows == 0) {
        g_string_append(out, "No row of these files has a measured memory.\n");
        return;
    }
    g_autoptr(GArray) groups = group_rows(ledger);
    g_string_append_printf(
        out,
        "Memory of %d published runs, in shares of the GPU's. seen: what 98 %% of runs took beyond their\n"
        "prediction, which grows where there is room; reserve: what run, search and plan keep, from the %d "
        "runs\n"
        "whose published peak is of tensors alone (needs) in a configuration that is published too\n\n",
        memory->rows, memory->needs);
    write_groups(groups, out);
    g_string_append_c(out, '\n');
    write_share(out, "measured <= predicted + seen:", memory->seen, memory->rows);
    if (memory->needs > 0) {
        write_share(out, "needs: measured <= predicted + reserve:", memory->covered, memory->needs);
        write_share(out, "... with a reserve from the other sources alone:", memory->left_out_covered,
                    memory->needs);
    }
    write_share(out, "called \"does not fit\" (all of them ran):", memory->none, memory->rows);
    write_share(out, "called \"at the edge\":", memory->edge, memory->rows);
}
