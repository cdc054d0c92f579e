/* unit/exchange/test_import_rl.c - NeMo-RL's files, with those that they extend, and launches of OpenRLHF and slime become
 * loops: batch, roles, layouts, engine. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/file.h"
#include "exchange/exchange.h"
#include "spec/load.h"

static Spec *loaded(const char *text, const char *path, int format, ExchangeLoss *loss)
{
    GError *error = NULL;
    OrrJsonDoc *doc = exchange_import(text, strlen(text), path, format, NULL, loss, &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    const char *const sets[] = {"cluster.accelerator=h100-sxm5-80gb", NULL};
    spec_load_json(orr_json_root(doc), path, sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

static const SpecRole *role(const Spec *spec, const char *name)
{
    const int row = spec_role_index(&spec->workload, name);
    g_assert_cmpint(row, >=, 0);
    return &spec->workload.role[row];
}

static bool warned(const ExchangeLoss *loss, const char *of)
{
    for (guint i = 0; i < loss->changes->len; i++)
        if (strstr(g_ptr_array_index(loss->changes, i), of) != NULL)
            return true;
    return false;
}

static const char recipe[] =
    "defaults: ./parent.yaml\ngrpo:\n  num_prompts_per_step: 64\n  async_grpo:\n    enabled: true\n    "
    "max_trajectory_age_steps: 2\n    in_flight_weight_updates: true\npolicy:\n  max_total_sequence_length: "
    "4096\n  "
    "megatron_cfg:\n    expert_model_parallel_size: 8\n  generation:\n    colocated:\n      enabled: false\n "
    "     "
    "resources:\n        num_nodes: 1\n        gpus_per_node: 8\n    vllm_cfg:\n      enforce_eager: "
    "yes\ncluster:\n  "
    "num_nodes: 3\n";
static const char parent[] =
    "defaults: ../../grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 16\n  num_generations_per_prompt: 32\n"
    "loss_fn:\n  reference_policy_kl_penalty: 0.0\npolicy:\n  model_name: Qwen/Qwen3-30B-A3B\n  "
    "train_global_batch_size: 512\n  train_micro_batch_size: 2\n  sequence_packing:\n    enabled: true\n    "
    "train_mb_tokens: ${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}\n  "
    "megatron_cfg:\n"
    "    enabled: true\n    expert_model_parallel_size: 4\n    activation_checkpointing: true\n  "
    "generation:\n    "
    "backend: vllm\n    vllm_cfg:\n      tensor_parallel_size: 2\n      gpu_memory_utilization: "
    "0.8\ncluster:\n  "
    "gpus_per_node: 8\n  num_nodes: 1\n";

static void test_nemo_rl(void)
{
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree char *folder = g_dir_make_tmp("orrery-rl-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "child.yaml", NULL),
                    *other = g_build_filename(folder, "parent.yaml", NULL);
    g_assert_true(orr_file_write(other, parent, strlen(parent), NULL));
    g_autofree Spec *spec = loaded(recipe, file, -1, &loss);
    const SpecWorkload *workload = &spec->workload;
    g_assert_cmpstr(spec->model.name, ==, "qwen3-30b-a3b");
    g_assert_cmpstr(workload->name, ==, "dapo"); /* without a penalty there is no reference */
    g_assert_cmpint(workload->generation.prompts, ==, 64);
    g_assert_cmpint(workload->generation.samples_per_prompt, ==, 32);
    g_assert_cmpint(workload->mini_batches, ==, 4);
    g_assert_cmpfloat(workload->micro_batch_tokens, ==, 8192);
    g_assert_cmpfloat(workload->generation.answer_tokens.max, ==, 4096 - 256);
    g_assert_cmpfloat(workload->staleness_steps, ==, 2);
    g_assert_true(workload->in_flight);
    g_assert_cmpint(spec->cluster.nodes, ==, 2);
    g_assert_cmpint(role(spec, "rollout")->nodes, ==, 1);
    g_assert_nonnull(strstr(role(spec, "rollout")->scenario, "\"captures_graphs\":false"));
    g_assert_nonnull(strstr(role(spec, "rollout")->scenario, "\"memory_frac\":0.8"));
    g_assert_nonnull(strstr(role(spec, "rollout")->scenario, "\"tensor\":2"));
    g_assert_false(role(spec, "rollout")->offloaded); /* it has its GPUs alone */
    g_assert_cmpint(spec->parallel.expert, ==, 8);
    g_assert_cmpint((int)spec->training.recompute.mode, ==, SPEC_RECOMPUTE_FULL);
    g_assert_false(warned(&loss, "defaults:"));
    g_unlink(other);
    g_auto(ExchangeLoss) alone;
    exchange_loss_init(&alone);
    GError *error = NULL;
    OrrJsonDoc *doc = exchange_import(recipe, strlen(recipe), file, -1, NULL, &alone, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    g_assert_true(warned(&alone, "defaults: ./parent.yaml is not there"));
    g_rmdir(folder);
}

/* All on the same GPUs: models move, and the reference is another of them. */
static void test_nemo_colocated(void)
{
    static const char text[] = "grpo:\n  num_prompts_per_step: 32\n  num_generations_per_prompt: 16\n  "
                               "use_dynamic_sampling: true\n  "
                               "batch_multiplier: 2\npolicy:\n  model_name: "
                               "meta-llama/Llama-3.1-8B-Instruct\n  sequence_packing:\n    "
                               "enabled: false\n  train_micro_batch_size: 1\n  dtensor_cfg:\n    enabled: "
                               "true\n    tensor_parallel_size: 2\n"
                               "cluster:\n  gpus_per_node: 8\n  num_nodes: 1\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree Spec *spec = loaded(text, "grpo.yaml", -1, &loss);
    g_assert_cmpstr(spec->workload.name, ==, "grpo");
    g_assert_cmpint(spec->workload.generation.prompts, ==, 64);
    g_assert_cmpfloat_with_epsilon(spec->workload.generation.kept_frac, 0.5, 1e-4);
    g_assert_true(spec->workload.padded);
    g_assert_cmpint(spec->parallel.zero, ==, 3);
    g_assert_cmpint(spec->parallel.tensor, ==, 2);
    g_assert_true(role(spec, "actor")->offloaded && role(spec, "reference")->offloaded &&
                  role(spec, "rollout")->offloaded);
    g_assert_nonnull(strstr(role(spec, "rollout")->scenario, "\"memory_frac\":0.6"));
}

static void test_openrlhf(void)
{
    static const char text[] =
        "python3 -m openrlhf.cli.train_ppo_ray \\\n --ref.num_nodes 1 --ref.num_gpus_per_node 8 \\\n "
        "--actor.num_nodes 2 --actor.num_gpus_per_node 8 \\\n --vllm.num_engines 4 "
        "--vllm.tensor_parallel_size 2 "
        "--vllm.gpu_memory_utilization 0.6 --vllm.enforce_eager \\\n --algo.advantage.estimator group_norm "
        "--algo.kl.init_coef 1e-3 \\\n --actor.model_name_or_path Qwen/Qwen2.5-7B-Instruct "
        "--train.colocate_actor_ref "
        "\\\n --rollout.batch_size 128 --rollout.n_samples_per_prompt 8 --train.batch_size 256 "
        "--train.micro_batch_size 4 \\\n --data.max_len 4096 --rollout.max_new_tokens 3072 --ds.zero_stage 3 "
        "--ds.ring_attn_size 2 \\\n --actor.gradient_checkpointing_enable --ds.packing_samples "
        "--train.async_enable\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree Spec *spec = loaded(text, "launch.sh", -1, &loss);
    const SpecWorkload *workload = &spec->workload;
    g_assert_cmpstr(workload->name, ==, "grpo");
    g_assert_cmpint(workload->mini_batches, ==, 4);
    g_assert_cmpint(spec->training.micro_batch, ==, 4);
    g_assert_cmpfloat(workload->generation.prompt_tokens, ==, 1024);
    g_assert_cmpfloat(workload->generation.answer_tokens.max, ==, 3072);
    g_assert_cmpint(spec->cluster.nodes, ==, 2);
    g_assert_cmpint(role(spec, "rollout")->nodes, ==, 1);
    g_assert_cmpint(role(spec, "reference")->nodes, ==, 0); /* with the actor */
    g_assert_cmpfloat(workload->staleness_steps, ==, 1);
    g_assert_cmpint(spec->parallel.context, ==, 2);
    g_assert_cmpint(spec->parallel.zero, ==, 3);
    g_assert_false(workload->padded);
}

/* Names before 0.10, a critic and a reward model on nodes of their own. */
static void test_openrlhf_before(void)
{
    static const char text[] =
        "python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 --reward_num_nodes 1 --critic_num_nodes 2 "
        "--actor_num_nodes 1 --actor_num_gpus_per_node 8 --vllm_num_engines 2 --vllm_tensor_parallel_size 2 "
        "--pretrain "
        "meta-llama/Llama-3.1-8B --reward_pretrain meta-llama/Llama-3.1-8B --rollout_batch_size 1024 "
        "--train_batch_size 128 --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 3 --init_kl_coef "
        "0.01\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree Spec *spec = loaded(text, "launch.sh", -1, &loss);
    g_assert_cmpstr(spec->workload.name, ==, "ppo");
    g_assert_cmpint(spec->workload.mini_batches, ==, 8);
    g_assert_cmpint(role(spec, "critic")->nodes, ==, 2);
    g_assert_cmpint(role(spec, "reward")->nodes, ==, 1);
    g_assert_cmpint(role(spec, "reference")->nodes, ==, 1);
    g_assert_nonnull(strstr(role(spec, "rollout")->scenario, "\"gpus_per_node\":4")); /* half a node */
    g_assert_nonnull(strstr(role(spec, "reward")->scenario, "llama3-8b"));
}

static void test_slime(void)
{
    static const char text[] =
        "CKPT_ARGS=(\n --hf-checkpoint /models/Qwen3-30B-A3B\n)\nROLLOUT_ARGS=(\n --rollout-batch-size 32\n "
        "--n-samples-per-prompt 8\n --rollout-max-response-len 8192\n --global-batch-size 128\n "
        "--over-sampling-batch-size 64\n)\nPERF_ARGS=(\n --tensor-model-parallel-size 4\n "
        "--sequence-parallel\n "
        "--expert-model-parallel-size 8\n --recompute-granularity full\n --use-dynamic-batch-size\n "
        "--max-tokens-per-gpu 20480\n)\npython3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 "
        "--rollout-num-gpus 16 --rollout-num-gpus-per-engine 8 --sglang-mem-fraction-static 0.7 "
        "--advantage-estimator "
        "grpo --use-kl-loss ${CKPT_ARGS[@]} ${ROLLOUT_ARGS[@]} ${PERF_ARGS[@]}\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree Spec *spec = loaded(text, "run.sh", -1, &loss);
    const SpecWorkload *workload = &spec->workload;
    g_assert_cmpstr(spec->model.name, ==, "qwen3-30b-a3b");
    g_assert_cmpstr(workload->name, ==, "grpo");
    g_assert_cmpstr(workload->generation.engine, ==, "sglang");
    g_assert_cmpint(workload->generation.prompts, ==, 64);
    g_assert_cmpfloat_with_epsilon(workload->generation.kept_frac, 0.5, 1e-4);
    g_assert_cmpint(workload->mini_batches, ==, 2);
    g_assert_cmpfloat(workload->micro_batch_tokens, ==, 20480);
    g_assert_cmpint(role(spec, "rollout")->nodes, ==, 2);
    g_assert_cmpint(spec->parallel.tensor, ==, 4);
    g_assert_cmpint(spec->parallel.sequence_parallel, ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rl/nemo-rl", test_nemo_rl);
    g_test_add_func("/rl/nemo-rl-colocated", test_nemo_colocated);
    g_test_add_func("/rl/openrlhf", test_openrlhf);
    g_test_add_func("/rl/openrlhf-before", test_openrlhf_before);
    g_test_add_func("/rl/slime", test_slime);
    return g_test_run();
}
