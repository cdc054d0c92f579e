/* spec/model_names.h - presets of models by the names that Hugging Face and training programs give them. */
#ifndef ORR_SPEC_MODEL_NAMES_H
#define ORR_SPEC_MODEL_NAMES_H

/* The preset of "NousResearch/Meta-Llama-3.1-8B-Instruct" or "torchtune.models.llama3_2.lora_llama3_2_3b"; NULL: none is called
 * so. Letters and digits of the last part count; words that change no shape (instruct, hf, lora) do not. g_free. */
char *spec_model_preset(const char *name);

#endif
