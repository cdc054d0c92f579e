/* exchange/export_launch.c - a shell script that starts an exported configuration: torchrun on every node, by hand or
 * under Slurm. Sources: torchrun's documentation; the frameworks' own examples name script and environment. */
#include <string.h>

#include "exchange/export.h"
#include "exchange/formats.h"

static const char *const launch_list[] = {"sbatch", "torchrun"};
const SpecWords exchange_words_launch = {"a launcher", launch_list, (int)G_N_ELEMENTS(launch_list), 0};
G_STATIC_ASSERT(G_N_ELEMENTS(launch_list) == EXCHANGE_LAUNCH_COUNT);

#define YOURS "  " SETTINGS_PLACEHOLDER "\n"

static char *quoted(const char *path)
{
    return g_shell_quote(path);
}

/* What torchrun starts, with the configuration's own option. */
static void append_program(const Spec *spec, ExchangeFormat format, GString *out)
{
    switch (format) {
    case EXCHANGE_FORMAT_MEGATRON:
        g_string_append(out, "pretrain_gpt.py \"${MEGATRON_ARGS[@]}\"\n");
        return;
    case EXCHANGE_FORMAT_MEGATRON_BRIDGE:
        g_string_append(out, "\"$RECIPE\" \"${BRIDGE_OVERRIDES[@]}\"\n");
        return;
    case EXCHANGE_FORMAT_DEEPSPEED:
        g_string_append(out, "\"$SCRIPT\" --deepspeed --deepspeed_config \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_TORCHTITAN:
        g_string_append(out, "-m torchtitan.train --job.config_file \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_NANOTRON:
        g_string_append(out, "run_train.py --config-file \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_AXOLOTL:
        g_string_append(out, "-m axolotl.cli.train \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_LLAMA_FACTORY:
        g_string_append(out, "src/train.py \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_TORCHTUNE:
        g_string_append(out, "\"$RECIPE\" --config \"$CONFIG\"\n");
        return;
    case EXCHANGE_FORMAT_TRL:
        g_string_append_printf(out, "-m trl.scripts.%s \"${TRL_ARGS[@]}\"\n",
                               spec->training.task == SPEC_TASK_DPO    ? "dpo"
                               : spec_task_refers(spec->training.task) ? "kto"
                                                                       : "sft");
        return;
    default:
        break;
    }
    g_assert_not_reached();
}

static void append_header(const Spec *spec, ExchangeLaunch launch, GString *out)
{
    g_string_append(out, "#!/bin/bash\n");
    if (launch == EXCHANGE_LAUNCH_SBATCH)
        g_string_append_printf(out,
                               "#SBATCH --job-name=orrery\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=1\n"
                               "#SBATCH --gpus-per-node=%d\n#SBATCH --exclusive\n"
                               "##SBATCH --partition=NAME" YOURS "##SBATCH --account=NAME" YOURS
                               "##SBATCH --time=HH:MM:SS" YOURS,
                               spec->cluster.nodes, spec->cluster.gpus_per_node);
    g_string_append(out,
                    "# Launch of an exported configuration; written by orrery " ORRERY_VERSION "\nset -eu\n");
}

static void append_environment(const Settings *settings, GString *out)
{
    for (guint i = 0; i < settings->environment->len; i++)
        g_string_append_printf(out, "export %s\n", (const char *)g_ptr_array_index(settings->environment, i));
    g_string_append(out, "export NCCL_DEBUG=WARN\n"
                         "# export NCCL_SOCKET_IFNAME=eth0" YOURS "# export NCCL_IB_HCA=mlx5" YOURS);
}

bool exchange_export_launch(const Spec *spec, ExchangeFormat format, ExchangeLaunch launch,
                            const char *config, GString *out, GError **error)
{
    const bool slurm = launch == EXCHANGE_LAUNCH_SBATCH;
    g_autofree char *local = strchr(config, '/') == NULL ? g_strconcat("./", config, NULL) : g_strdup(config);
    g_autofree char *name = quoted(local);
    Settings settings;
    if (exchange_format_row(format) != NULL && exchange_format_row(format)->export_loop != NULL)
        return exchange_export_refuse(error, format, "--launch", "torchrun",
                                      "leave it out: Ray starts its loops, by the program's own command");
    if (exchange_format_row(format) != NULL && exchange_format_row(format)->adapter_only)
        return exchange_export_refuse(
            error, format, "--launch", "torchrun",
            "leave it out: an adapter starts nothing; --to trl writes a run with it");
    settings_init(&settings);
    if (!exchange_export_settings(spec, format, &settings, error)) {
        settings_clear(&settings);
        return false;
    }
    append_header(spec, launch, out);
    append_environment(&settings, out);
    settings_clear(&settings);
    g_string_append_printf(out, "CONFIG=%s\n", name);
    if (format == EXCHANGE_FORMAT_MEGATRON || format == EXCHANGE_FORMAT_MEGATRON_BRIDGE ||
        format == EXCHANGE_FORMAT_TRL)
        g_string_append(out, "source \"$CONFIG\"\n");
    if (format == EXCHANGE_FORMAT_MEGATRON_BRIDGE)
        g_string_append(out, "RECIPE=recipe.py" YOURS);
    if (format == EXCHANGE_FORMAT_DEEPSPEED)
        g_string_append(out, "SCRIPT=train.py" YOURS);
    if (format == EXCHANGE_FORMAT_TORCHTUNE)
        g_string_append(out, spec->training.adapter.given ? "RECIPE=lora_finetune_distributed.py" YOURS
                                                          : "RECIPE=full_finetune_distributed.py" YOURS);
    g_string_append(out, "PORT=29500" YOURS);
    if (slurm)
        g_string_append(out, "HEAD=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n");
    else
        g_string_append(out, spec->cluster.nodes > 1 ? "HEAD=node-0" YOURS : "HEAD=localhost\n");
    g_string_append_printf(out,
                           "%storchrun --nnodes %d --nproc-per-node %d \\\n"
                           "    --rdzv-id %s --rdzv-backend c10d --rdzv-endpoint \"$HEAD:$PORT\" \\\n    ",
                           slurm ? "srun " : "", spec->cluster.nodes, spec->cluster.gpus_per_node,
                           slurm ? "\"$SLURM_JOB_ID\"" : "orrery");
    append_program(spec, format, out);
    return true;
}
