/* workload/purchase.h - how many GPUs for so many steps of a loop: machines of several sizes, each with its best split. */
#ifndef ORR_WORKLOAD_PURCHASE_H
#define ORR_WORKLOAD_PURCHASE_H

#include "workload/split.h"

enum { PURCHASE_MOST_ROWS = 32 };

typedef struct PurchaseRow {
    int gpus;
    SplitRow split;
    double days, gpu_hours, usd; /* of workload.steps; usd 0: no price */
    bool keeps;                  /* deadline and budget */
} PurchaseRow;

typedef struct Purchase {
    const Spec *spec; /* borrowed */
    PurchaseRow row[PURCHASE_MOST_ROWS];
    int row_count;
    int answer; /* the fewest GPUs that keep deadline and budget; -1: none does */
    double deadline_s, budget_usd;
} Purchase;

/* `gpus` [count]: sizes of the machine in whole nodes; count 0: from one node on by doubling, to eight times the scenario's.
 * Sizes that hold nothing are left out. `deadline_s`, `budget_usd` 0: none. */
bool purchase_run(const Spec *spec, const SpecSource *source, const int *gpus, int count, double deadline_s,
                  double budget_usd, Purchase *ret_purchase, GError **error);

void purchase_write_json(const Purchase *purchase, const SpecSource *source, GString *out);
void purchase_write_text(const Purchase *purchase, GString *out);
void purchase_write_csv(const Purchase *purchase, GString *out);

#endif
