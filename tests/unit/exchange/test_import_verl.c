/* unit/exchange/test_import_verl.c - a launch of verl becomes a loop: its batch, its roles, its layouts. */
#include <string.h>

#include "exchange/exchange.h"
#include "spec/load.h"

static const char launch[] =
    "set -x\npython3 -m verl.trainer.main_ppo \\\n    algorithm.adv_estimator=grpo \\\n"
    "    data.train_batch_size=512 \\\n    data.max_prompt_length=1024 \\\n    data.max_response_length=2048 "
    "\\\n"
    "    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\\n"
    "    actor_rollout_ref.model.use_remove_padding=True \\\n"
    "    actor_rollout_ref.actor.ppo_mini_batch_size=128 \\\n    "
    "actor_rollout_ref.actor.use_dynamic_bsz=True \\\n"
    "    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000 \\\n"
    "    actor_rollout_ref.actor.use_kl_loss=True \\\n    actor_rollout_ref.rollout.n=5 \\\n"
    "    actor_rollout_ref.rollout.tensor_model_parallel_size=4 \\\n    "
    "actor_rollout_ref.rollout.name=sglang actor_rollout_ref.rollout.enforce_eager=True \\\n"
    "    trainer.n_gpus_per_node=8 \\\n    trainer.nnodes=2 $@\n";

static void test_launch(void)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(launch, strlen(launch), "launch.sh", -1, NULL, &loss, &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const char *const sets[] = {"cluster=dgx-h100", "cluster.nodes=2", NULL};
    spec_load_json(orr_json_root(doc), "launch.sh", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    const SpecWorkload *workload = &spec->workload;
    g_assert_cmpstr(workload->name, ==, "grpo");
    g_assert_cmpstr(spec->model.name, ==, "qwen2.5-7b");
    g_assert_cmpint(workload->generation.prompts, ==, 512);
    g_assert_cmpint(workload->generation.samples_per_prompt, ==, 5);
    g_assert_cmpfloat(workload->generation.answer_tokens.max, ==, 2048);
    g_assert_cmpstr(workload->generation.engine, ==, "sglang");
    g_assert_cmpint(workload->mini_batches, ==, 4);
    g_assert_cmpfloat(workload->micro_batch_tokens, ==, 24000);
    g_assert_false(workload->padded);
    g_assert_cmpint(spec->parallel.zero, ==, 3);
    const int rollout = spec_role_index(workload, "rollout");
    g_assert_cmpint(rollout, >=, 0);
    g_assert_nonnull(strstr(workload->role[rollout].scenario, "\"tensor\":4"));
    g_assert_nonnull(strstr(workload->role[rollout].scenario, "\"captures_graphs\":false"));
    g_assert_cmpint(spec_role_index(workload, "critic"), ==, -1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/verl", test_launch);
    return g_test_run();
}
