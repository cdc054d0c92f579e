/* exchange/loss.c - the loss report of imports and exports. */
#include "exchange/loss.h"
#include "base/shown.h"

#include <string.h>

void exchange_loss_init(ExchangeLoss *loss)
{
    *loss = (ExchangeLoss){.changes = g_ptr_array_new_with_free_func(g_free),
                           .harmless = g_ptr_array_new_with_free_func(g_free),
                           .defaults = g_ptr_array_new_with_free_func(g_free),
                           .placeholders = g_ptr_array_new_with_free_func(g_free)};
}

void exchange_loss_clear(ExchangeLoss *loss)
{
    g_clear_pointer(&loss->changes, g_ptr_array_unref);
    g_clear_pointer(&loss->harmless, g_ptr_array_unref);
    g_clear_pointer(&loss->defaults, g_ptr_array_unref);
    g_clear_pointer(&loss->placeholders, g_ptr_array_unref);
}

/* Text of a file may hold anything: escapes of a terminal, megabytes. */
static void add(GPtrArray *list, const char *text)
{
    enum { MOST = 2400 };
    g_autofree char *shown = orr_shown(text, '?', "");
    GString *line = g_string_new(NULL);
    for (const char *c = shown; *c != '\0' && line->len < MOST; c = g_utf8_next_char(c))
        g_string_append_unichar(line, g_utf8_get_char(c));
    if (line->len >= MOST)
        g_string_append(line, " ...");
    g_ptr_array_add(list, g_string_free(line, FALSE));
}

void exchange_loss_change(ExchangeLoss *loss, const char *text)
{
    add(loss->changes, text);
}

void exchange_loss_harmless(ExchangeLoss *loss, const char *text)
{
    add(loss->harmless, text);
}

void exchange_loss_default(ExchangeLoss *loss, const char *text)
{
    add(loss->defaults, text);
}

static void append_names(const GPtrArray *names, GString *out)
{
    enum { MOST = 60 };
    for (guint i = 0; i < names->len && i < MOST; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? ", " : "", (const char *)g_ptr_array_index(names, i));
    if (names->len > MOST)
        g_string_append_printf(out, " and %u more", names->len - MOST);
}

void exchange_loss_write(const ExchangeLoss *loss, GString *out)
{
    g_string_append(out, "Not carried over, and changes the prediction:");
    if (loss->changes->len == 0)
        g_string_append(out, " nothing\n");
    else
        g_string_append_c(out, '\n');
    for (guint i = 0; i < loss->changes->len; i++)
        g_string_append_printf(out, "  - %s\n", (const char *)g_ptr_array_index(loss->changes, i));
    g_string_append(out, "Not carried over, and does not change it: ");
    if (loss->harmless->len == 0)
        g_string_append(out, "nothing");
    append_names(loss->harmless, out);
    g_string_append_c(out, '\n');
    for (guint i = 0; i < loss->defaults->len; i++)
        g_string_append_printf(out, "Default of the framework: %s\n",
                               (const char *)g_ptr_array_index(loss->defaults, i));
    if (loss->placeholders->len == 0)
        return;
    g_string_append(out, "Placeholders without a value: ");
    append_names(loss->placeholders, out);
    g_string_append_c(out, '\n');
}

/* Patterns over a key in lower case with '_' for '-'. */
static const char *const no_step[] = {
    /* what a run says and writes */
    "log_*",
    "*.log_*",
    "*_log_*",
    "logging*",
    "*logging.*",
    "wandb*",
    "*.wandb*",
    "*tensorboard*",
    "*comet_*",
    "*mlflow*",
    "metrics.*",
    "profiling.*",
    "profiler*",
    "monitor*",
    "csv_monitor*",
    "steps_per_print",
    "wall_clock_breakdown",
    "dump_state",
    "flops_profiler*",
    "job.*",
    "general.*",
    "timing_*",
    "one_logger*",
    "enable_one_logger",
    "print_*",
    "*.print_*",
    "experiment_name",
    "verbose",
    "exp_name*",
    "profile",
    "profile_*",
    "use_pytorch_profiler",
    "record_memory_history",
    "memory_snapshot_path",
    "barrier_with_l1_time",
    "no_barrier_with_level_1_timing",
    "disable_straggler_on_startup",
    "rerun_mode",
    "error_injection*",
    "inprocess_*",
    "nvtx*",
    "report_*",
    /* checkpoints, evaluation, ends */
    "save",
    "save_*",
    "output_dir",
    "do_train",
    "template",
    "load",
    "load_*",
    "*ckpt*",
    "checkpoint.*",
    "checkpoints.*",
    "checkpointing.*",
    "*eval*",
    "validation.*",
    "exit_*",
    "*_interval",
    "lighteval*",
    "s3_upload*",
    "async_save",
    "no_save_*",
    "no_load_*",
    "finetune",
    "pretrained_checkpoint",
    "experimental.*checkpoint*",
    "use_checkpoint_args",
    "override_opt*",
    "non_persistent*",
    "replication*",
    /* data and tokens */
    "data_path",
    "data_args_path",
    "train_data_path",
    "valid_data_path",
    "test_data_path",
    "data_cache_path",
    "split",
    "mock_data",
    "dataset.*",
    "data_stages*",
    "data_impl",
    "*dataset*",
    "tokenizer*",
    "vocab_file",
    "merge_file",
    "num_workers",
    "dataloader*",
    "*dataloader*",
    "mmap_warmup",
    "no_mmap*",
    "reset_*",
    "eod_mask_loss",
    "data_efficiency*",
    "special_tokens*",
    "legacy_tokenizer",
    "tiktoken*",
    "create_attention_mask_in_dataloader",
    "no_create_attention_mask_in_dataloader",
    "hf_*",
    "model.hf_assets_path",
    "model.tokenizer_path",
    /* the optimizer's numbers, initial values */
    "lr",
    "lr_*",
    "*.lr",
    "min_lr",
    "*_lr",
    "lr_scheduler.*",
    "scheduler.*",
    "weight_decay*",
    "*.weight_decay*",
    "start_weight_decay",
    "end_weight_decay",
    "adam_*",
    "*.adam_*",
    "*betas",
    "*.beta1",
    "*.beta2",
    "*.eps",
    "beta*",
    "eps",
    "sgd_momentum",
    "clip_grad",
    "*.clip_grad",
    "gradient_clipping",
    "training.max_norm",
    "init_method*",
    "*.init_method*",
    "seed",
    "*.seed",
    "loss_scale*",
    "initial_loss_scale",
    "min_loss_scale",
    "hysteresis",
    "fp16.*scale*",
    "fp16.hysteresis",
    "fp16.*_power",
    "*learning_rate*",
    "override_lr*",
    "*aux_loss_coeff",
    "*z_loss_coeff",
    "norm_epsilon",
    "*layernorm_epsilon",
    "rotary_base",
    "rotary_percent",
    "rope_scaling_factor",
    "rotary_seq_len_interpolation_factor",
    "attention_softmax_in_fp32",
    "mtp_loss_scaling_factor",
    "fp8_amax_*",
    "fp8_margin",
    "fp8_interval",
    "moe_router_score_function",
    "moe_router_pre_softmax",
    "moe_router_enable_expert_bias",
    "moe_router_load_balancing_type",
    "calculate_per_token_loss",
    "use_mcore_models",
    "manual_gc*",
    "*.rope_theta",
    "train_iters",
    "train.train_iters",
    "train_samples",
    "training.steps",
    "tokens.train_steps",
    "tokens.limit_*",
    "tokens.val_*",
    "optimizer.params.*",
    "no_weight_decay*",
    "moe_router_bias_update_rate",
    "moe_router_topk_scaling_factor",
    /* the launch */
    "master_addr",
    "master_port",
    "rdzv_*",
    "rdzv*",
    "node_rank",
    "max_restarts",
    "distributed_timeout*",
    "distributed_backend",
    "local_rank",
    "hostfile",
    "include",
    "exclude",
    "no_python",
    "launcher*",
    "standalone",
    "tee",
    "redirects",
    "run_path",
    "local_ranks_filter",
    "role",
    "monitor_interval",
    "conda*",
    "container*",
    "output",
    "error",
    "partition",
    "account",
    "time",
    "job_name",
    "ntasks*",
    "cpus_per_task",
    "mem",
    "exclusive",
    "deepspeed_config",
    "config_file",
    "config_name",
    "comm.*",
    "no_gradient_accumulation_fusion_warning",
    "debug.*",
};

bool exchange_changes_no_step(const char *key)
{
    g_autofree char *plain = g_ascii_strdown(key, -1);
    g_strdelimit(plain, "-", '_');
    for (gsize i = 0; i < G_N_ELEMENTS(no_step); i++)
        if (g_pattern_match_simple(no_step[i], plain))
            return true;
    return false;
}
