/* spec/fields_recipe_learned.c - field table of what `orrery learn` writes into a framework's recipe. */
#include "spec/fields_internal.h"
#include "spec/framework.h"

/* Twenty times as fast or slow is another kernel. */
#define LEARNED(member, what)                                                                                \
    SPEC_F_DOUBLE(SpecRecipeLearned, member, ORR_UNIT_FRAC, -0.95, 19, "0", 0,                               \
                  "Time of " what " beyond what the model predicts, as a share of it. 0.05 is 5 % longer. "  \
                  "'orrery learn' writes it.")

static const SpecField learned_fields[] = {
    LEARNED(products_excess_frac, "matrix products"),
    LEARNED(attention_excess_frac, "attention kernels"),
    LEARNED(norms_excess_frac, "norms"),
    LEARNED(elementwise_excess_frac, "other kernels of a layer, which only move bytes,"),
    LEARNED(optimizer_excess_frac, "the optimizer's kernels"),
    LEARNED(all_reduce_excess_frac, "all-reduces"),
    LEARNED(all_gather_excess_frac, "all-gathers"),
    LEARNED(reduce_scatter_excess_frac, "reduce-scatters"),
    LEARNED(all_to_all_excess_frac, "all-to-alls"),
    LEARNED(send_receive_excess_frac, "messages between pipeline stages"),
};
SPEC_TABLE(spec_table_recipe_learned, "learned",
           "What kernels take beyond what the model of the GPU says, as a trace of a step showed.",
           learned_fields);
