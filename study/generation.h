/* study/generation.h - what generation costs, for people and programs. */
#ifndef ORR_STUDY_GENERATION_H
#define ORR_STUDY_GENERATION_H

#include "base/json.h"
#include "costmodel/generate.h"

/* Tokens a second of a decode step at every batch and context, where lists are asked for. */
typedef struct GenerationTable {
    const double *batches, *contexts; /* sequences of a replica; tokens of each */
    int batch_count, context_count;
} GenerationTable;

typedef struct Generation {
    const Spec *spec;
    const CostGenerateAsk *ask;
    CostDecode decode;
    CostGenerated result;
} Generation;

/* Answers the question, and checks what it comes to where `check` is set: parts add up, no cache is overfull. */
bool generation_run(const Spec *spec, const CostGenerateAsk *ask, bool check, Generation *ret_generation,
                    GError **error);

void generation_text(const Generation *generation, GString *out);
void generation_json(const Generation *generation, GString *out);

/* A table alone: rows are batches, columns contexts. */
bool generation_table(const Spec *spec, const GenerationTable *table, bool json, GString *out,
                      GError **error);

#endif
