/* spec/fields_recipe_ops.c - the list "ops" of a framework's recipe: kernels that it runs behind ops of a layer.
 * Tested: unit/costmodel/test_recipe_ops.c
 */
#include "spec/fields_internal.h"

#include <string.h>

#include "base/error.h"

/* Where a recipe names no mechanism behind a number, nobody can check it. */
bool spec_read_source(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)target;
    if (orr_json_type(node) != ORR_JSON_TEXT || orr_json_text(node)[0] == '\0')
        return spec_read_fail(context, NULL, error, "names nothing; give the code or paper that shows it");
    return true;
}

static const SpecField op_fields[] = {
    SPEC_F_WORD(SpecRecipeOp, after, &spec_words_op, NULL, SPEC_FIELD_REQUIRED,
                "The op after which the kernels run, as run --kernels names it."),
    SPEC_F_WORD(SpecRecipeOp, with, &spec_words_op, NULL, 0,
                "An op that the same pass must run too, such as attention for a fused core. Absent: none."),
    SPEC_F_WORD(SpecRecipeOp, pass, &spec_words_op_pass, NULL, SPEC_FIELD_REQUIRED,
                "The pass that runs the kernels."),
    SPEC_F_DOUBLE(SpecRecipeOp, copies, ORR_UNIT_NONE, 0, 100, "0", 0,
                  "How often each element is read and written, as wide as activations. Elements of a product "
                  "are those of its output, its output's gradient, or its weights' gradient, by the pass. "
                  "Elements of attention are its queries, keys and values."),
    SPEC_F_DOUBLE(SpecRecipeOp, bytes_per_element, ORR_UNIT_BYTES, 0, 1000, "0", 0,
                  "Bytes read and written for each element, besides copies."),
    SPEC_F_INT(SpecRecipeOp, kernels, 1, 100, "1", 0, "Kernel launches."),
    SPEC_F_CUSTOM_SOURCE("The code or paper that shows the kernels."),
};
SPEC_TABLE(spec_table_recipe_op, "framework.ops", "A tensor that the software copies or reads once more.",
           op_fields);

bool spec_read_recipe_ops(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecRecipeOps *ops = target;
    ops->count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST)
        return spec_read_fail(context, node, error, "is not a list; give a list of objects");
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecRecipeOp op;
        memset(&op, 0, sizeof op); /* frameworks are compared byte by byte */
        op.with = SPEC_NO_OP;
        if (ops->count == SPEC_RECIPE_MOST_OPS)
            return spec_read_fail(context, NULL, error, "has more than %d entries; join some",
                                  SPEC_RECIPE_MOST_OPS);
        context->quiet++;
        const bool ok = spec_read_table(context, &spec_table_recipe_op, item, &op, error);
        context->quiet--;
        if (!ok)
            return false;
        if (op.copies == 0 && op.bytes_per_element == 0)
            return spec_read_fail(context, NULL, error,
                                  "has an entry that moves nothing; give copies or bytes_per_element");
        memcpy(&ops->op[ops->count++], &op, sizeof op);
    }
    return true;
}
