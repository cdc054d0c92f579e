/* spec/recipes.h - what a framework's recipes set for a model on a GPU: `recipes` of a framework profile.
 *
 * A recipe is a part of a scenario under conditions: { "models", "layers", "accelerators", "precisions", "stages", "facts",
 * "scenario" }.
 * A field that the scenario omits comes from the first matching recipe that sets it. Keys of
 * `execution.framework` in a recipe replace those of the profile that it belongs to. A search, whose points differ in
 * stages, gives each the layers that a recipe has for its stages.
 */
#ifndef ORR_SPEC_RECIPES_H
#define ORR_SPEC_RECIPES_H

#include "base/json.h"
#include "spec/spec.h"

/* Fails, with a message that begins with `where`, where `recipes` (NULL: none) is not a list of such objects. */
bool spec_recipes_check(const OrrJson *recipes, const char *where, GError **error);

/* Puts the parts that match under the resolved scenario `doc`, whose model, cluster and framework are objects. `own` is the
 * scenario as it was written (NULL: an empty one), whose framework may be a name, else under today's keys: what it says of
 * the framework stands, and a list of `execution.overlap` in it is the whole list. Each key that this adds goes to `notes` (char*, may be NULL) as
 * "training.head_8bit=true (recipe)". */
bool spec_recipes_apply(OrrJsonDoc **doc, const OrrJson *own, const char *where, GPtrArray *notes,
                        GError **error);

/* Of recipes that match the resolved scenario but for their `stages`, which it leaves "auto", the layers of each number of
 * stages: "16:4,4,4,...;8:8,8,...", interned; NULL: none, or stage_layers are stated. */
const char *spec_recipes_splits(const OrrJson *scenario);

/* Gives `parallel`, whose pipeline and virtual stages are known, the layers that recipe_splits has for them; false, and
 * nothing is changed, where it has none. */
bool spec_recipes_take_split(SpecParallel *parallel);

#endif
