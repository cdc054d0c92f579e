/* spec/import_hf.h - a Hugging Face config.json as a model.
 *
 * Known: GPT-2, Llama, Mistral, Mixtral, Qwen2 and Qwen3 (dense and mixture of experts), DeepSeek-V2 and V3,
 * Kimi-K2, gpt-oss. Other model types are refused by name rather than guessed.
 */
#ifndef ORR_SPEC_IMPORT_HF_H
#define ORR_SPEC_IMPORT_HF_H

#include "base/json.h"

/* Whether `root` is such a file (it has "model_type", "architectures", "hidden_size" or "n_embd"). */
bool spec_is_hf_config(const OrrJson *root);

/* The model object of interface "model", not yet checked. `path` names the file in messages, and the model. */
OrrJsonDoc *spec_import_hf(const OrrJson *root, const char *path, GError **error);

#endif
