/* spec/recipe_facts.h - facts of a scenario by which a recipe may ask whether it applies: `facts` of an entry of `recipes`. They
 * tell classes of programs apart (a plain loop, one that shares a layer over ranks) where no profile knows the program.
 */
#ifndef ORR_SPEC_RECIPE_FACTS_H
#define ORR_SPEC_RECIPE_FACTS_H

#include "base/json.h"

/* The names, comma-separated, for messages. */
#define SPEC_RECIPE_FACTS                                                                                    \
    "shared-model, unfused-attention, learned-positions, 8-bit, not-compiled, capacity-factor, "             \
    "hugging-face, sharded-optimizer, adapter-task, whole-model-task, unsharded, compiled-whole, "           \
    "nemo-unfused"

bool spec_recipe_fact_is(const char *name);

/* Whether the resolved scenario has it. "auto" counts as having it: a search may take it. */
bool spec_recipe_fact_holds(const char *name, const OrrJson *scenario);

#endif
