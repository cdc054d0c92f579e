/* ledger/few_shot.c - see few_shot.h. */
#include "ledger/few_shot.h"

#include <math.h>
#include <string.h>

enum { SEED = 1 };

/* Rows with a time, by place: lists of LedgerOwnRun. */
static GPtrArray *places_of(const Ledger *ledger)
{
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *places = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        if (row->residual < 0)
            continue;
        const LedgerResidual *residual = ledger_residual(ledger->residuals, (guint)row->residual);
        g_autofree char *word = g_strndup(row->id, strcspn(row->id, "-"));
        char *key = g_strdup_printf("%d %s %s", row->source, word, residual->accelerator);
        GArray *place = g_hash_table_lookup(known, key);
        if (place == NULL) {
            place = g_array_new(FALSE, FALSE, sizeof(LedgerOwnRun));
            g_ptr_array_add(places, place);
            g_hash_table_insert(known, key, place);
        } else {
            g_free(key);
        }
        const LedgerOwnRun run = {row->traits, residual->log_ratio};
        g_array_append_val(place, run);
    }
    return places;
}

static double error_of(const LedgerOwnRun *run, const LedgerOwnRun *own, int count)
{
    const LedgerOwnSays says = ledger_own_says(own, count, &run->traits);
    return fabs(exp(says.log_ratio - run->log_ratio) - 1);
}

/* `count` others of the place, drawn without replacement. */
static void draw(const GArray *place, guint left_out, int count, GRand *random, LedgerOwnRun *ret_own)
{
    g_autofree guint *order = g_new(guint, place->len);
    guint others = 0;
    for (guint i = 0; i < place->len; i++)
        if (i != left_out)
            order[others++] = i;
    for (int i = 0; i < count; i++) {
        const guint at = (guint)g_rand_int_range(random, i, (gint32)others), taken = order[at];
        order[at] = order[i];
        order[i] = taken;
        ret_own[i] = g_array_index(place, LedgerOwnRun, taken);
    }
}

typedef struct Near {
    double likeness;
    guint at;
} Near;

static int compare_near(gconstpointer a, gconstpointer b)
{
    const Near *x = a, *y = b;
    const int by_likeness = (x->likeness < y->likeness) - (x->likeness > y->likeness);
    return by_likeness != 0 ? by_likeness : (x->at > y->at) - (x->at < y->at);
}

static void pick_nearest(const GArray *place, guint left_out, int count, LedgerOwnRun *ret_own)
{
    const LedgerOwnRun *asked = &g_array_index(place, LedgerOwnRun, left_out);
    g_autoptr(GArray) near = g_array_new(FALSE, FALSE, sizeof(Near));
    for (guint i = 0; i < place->len; i++) {
        const Near one = {ledger_likeness(&g_array_index(place, LedgerOwnRun, i).traits, &asked->traits), i};
        if (i != left_out)
            g_array_append_val(near, one);
    }
    g_array_sort(near, compare_near);
    for (int i = 0; i < count; i++)
        ret_own[i] = g_array_index(place, LedgerOwnRun, g_array_index(near, Near, i).at);
}

static void add_place(const GArray *place, int own, GRand *random, LedgerFewShot *sums)
{
    g_autofree LedgerOwnRun *runs = g_new(LedgerOwnRun, (gsize)MAX(own, 1));
    double plain = 0, drawn = 0, nearest = 0;
    for (guint i = 0; i < place->len; i++) {
        const LedgerOwnRun *run = &g_array_index(place, LedgerOwnRun, i);
        plain += error_of(run, NULL, 0);
        for (int k = 0; k < LEDGER_FEW_SHOT_DRAWS; k++) {
            draw(place, i, own, random, runs);
            drawn += error_of(run, runs, own) / LEDGER_FEW_SHOT_DRAWS;
        }
        pick_nearest(place, i, own, runs);
        nearest += error_of(run, runs, own);
    }
    sums->places += 1;
    sums->rows += (int)place->len;
    sums->plain += plain;
    sums->drawn += drawn;
    sums->nearest += nearest;
    sums->plain_places += plain / place->len;
    sums->drawn_places += drawn / place->len;
    sums->nearest_places += nearest / place->len;
}

LedgerFewShot ledger_few_shot(const Ledger *ledger, int own)
{
    g_autoptr(GPtrArray) places = places_of(ledger);
    GRand *random = g_rand_new_with_seed(SEED);
    LedgerFewShot sums = {.own = own};
    for (guint i = 0; i < places->len; i++) {
        const GArray *place = places->pdata[i];
        if ((int)place->len >= own + 2)
            add_place(place, own, random, &sums);
    }
    g_rand_free(random);
    const double rows = sums.rows > 0 ? (double)sums.rows : (double)NAN,
                 count = sums.places > 0 ? (double)sums.places : (double)NAN;
    sums.plain /= rows;
    sums.drawn /= rows;
    sums.nearest /= rows;
    sums.plain_places /= count;
    sums.drawn_places /= count;
    sums.nearest_places /= count;
    return sums;
}
