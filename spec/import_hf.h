/* spec/import_hf.h - a Hugging Face config.json as a model.
 *
 * Known: GPT-2, Llama to 4, Mistral, Mixtral, Qwen2 and Qwen3 (dense and mixture of experts), DeepSeek-V2 and V3,
 * Kimi-K2, Hunyuan, gpt-oss, Gemma to 3, GLM-4 and 4.5, Phi, OLMo 2 and 3, OLMoE, GPT-NeoX, Falcon, Nemotron-4; with an encoder
 * BART, mBART, Blenderbot, Marian, Pegasus, T5, mT5, UMT5. Other model types,
 * and layers of state-space or linear attention, are refused by name rather than guessed.
 */
#ifndef ORR_SPEC_IMPORT_HF_H
#define ORR_SPEC_IMPORT_HF_H

#include "base/json.h"

/* Whether `root` is such a file (it has "model_type", "architectures", "hidden_size" or "n_embd"). */
bool spec_is_hf_config(const OrrJson *root);

/* The model object of interface "model", not yet checked. `path` names the file in messages, and the model. */
OrrJsonDoc *spec_import_hf(const OrrJson *root, const char *path, GError **error);

/* The same; `changes` and `harmless` (char*) get what a model has no field for: what changes the prediction, and keys that
 * do not. */
OrrJsonDoc *spec_import_hf_said(const OrrJson *root, const char *path, GPtrArray *changes,
                                GPtrArray *harmless, GError **error);

/* Whether a key of such a file leaves a training step as it is: names, tokens, initial values, how text is generated. */
bool spec_hf_changes_no_step(const char *key, const OrrJson *value);

#endif
