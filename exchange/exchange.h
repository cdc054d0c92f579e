/* exchange/exchange.h - scenarios to and from the configuration files of training frameworks.
 *
 * Export writes what a framework can say in its own names; what it cannot say (the cluster, a preset's name, fields
 * of the simulator) goes into one comment line, or into a member "orrery" where the format has no comments. Import
 * reads the framework's names, starts from that comment or from a base scenario, and warns about what it does not
 * know. What is written natively wins over the comment, so a file edited by hand means what it says.
 */
#ifndef ORR_EXCHANGE_H
#define ORR_EXCHANGE_H

#include "base/json.h"
#include "exchange/loss.h"
#include "spec/spec.h"

typedef enum {
    EXCHANGE_FORMAT_MEGATRON,        /* command line flags of Megatron-LM's pretrain_gpt.py */
    EXCHANGE_FORMAT_MEGATRON_BRIDGE, /* overrides "model.tensor_model_parallel_size=8" of Megatron-Bridge recipes */
    EXCHANGE_FORMAT_DEEPSPEED,       /* ds_config.json */
    EXCHANGE_FORMAT_TORCHTITAN, /* job configuration in TOML */
    EXCHANGE_FORMAT_NANOTRON,   /* configuration in YAML */
    EXCHANGE_FORMAT_VERL,       /* overrides of a launch: verl.trainer.main_ppo data.train_batch_size=... */
    EXCHANGE_FORMAT_NEMO_RL,    /* configuration in YAML; it and verl hold loops and nothing else */
    EXCHANGE_FORMAT_HF,         /* Hugging Face config.json: the model only; import only */
    EXCHANGE_FORMAT_AXOLOTL,
    EXCHANGE_FORMAT_LLAMA_FACTORY,
    EXCHANGE_FORMAT_TORCHTUNE,
    EXCHANGE_FORMAT_TRL,      /* arguments of its scripts: trl sft --model_name_or_path ... */
    EXCHANGE_FORMAT_OPENRLHF, /* arguments of openrlhf.cli.train_ppo_ray */
    EXCHANGE_FORMAT_SLIME,    /* arguments of train.py, among Megatron-LM's */
    EXCHANGE_FORMAT_PEFT,     /* adapter_config.json: the adapter and nothing else */
    EXCHANGE_FORMAT_COUNT
} ExchangeFormat;

extern const SpecWords exchange_words_format; /* not all can be exported: exchange_format_row() */

/* Appends `spec` (complete, no "auto") in a format. `scenario`: the document it was loaded from, for the comment.
 * `loss` (may be NULL): what the framework's file does not say. Fails with the field that the framework cannot do, or
 * that its own argument checks refuse. */
bool exchange_export(const Spec *spec, const OrrJson *scenario, ExchangeFormat format, GString *out,
                     ExchangeLoss *loss, GError **error);

/* What starts an exported configuration on the scenario's nodes. */
typedef enum { EXCHANGE_LAUNCH_SBATCH, EXCHANGE_LAUNCH_TORCHRUN, EXCHANGE_LAUNCH_COUNT } ExchangeLaunch;
extern const SpecWords exchange_words_launch;

/* Appends a shell script that launches `config` (a path; the file that exchange_export wrote): nodes, GPUs of each,
 * environment, rendezvous; what only the cluster's users know is marked as a placeholder. */
bool exchange_export_launch(const Spec *spec, ExchangeFormat format, ExchangeLaunch launch,
                            const char *config, GString *out, GError **error);

/* A scenario document from a framework's file; not checked, and incomplete where neither file nor base say.
 * `format` -1: told from the text. `base` (may be NULL) instead of the comment. `loss`: what was not carried over. */
OrrJsonDoc *exchange_import(const char *text, size_t length, const char *path, int format,
                            const OrrJson *base, ExchangeLoss *loss, GError **error);
/* The same knowing `sets` ("key.path=value", NULL-terminated, may be NULL) from the start, so that a cluster which they
 * name tells the data-parallel degree; what the file says lies above them. */
OrrJsonDoc *exchange_import_knowing(const char *text, size_t length, const char *path, int format,
                                    const OrrJson *base, const char *const *sets, ExchangeLoss *loss,
                                    GError **error);

#endif
