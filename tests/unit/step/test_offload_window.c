/* tests/unit/step/test_offload_window.c - a window of layers on each of several GPUs. */
#include <math.h>

#include "tests/unit/checked_run_fixture.h"

static const char text[] =
    "{\"model\":{\"name\":\"m\",\"layers\":50,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,\"vocab\":"
    "50257,"
    "\"tied_embeddings\":true,\"max_positions\":1024},\"cluster\":{\"preset\":\"dgx-2\",\"gpus_per_node\":1},"
    "\"training\":{\"sequence_length\":1024,\"global_batch\":4,\"micro_batch\":4,\"precision\":\"fp16\","
    "\"recompute\":\"full\"},\"parallel\":{\"zero\":2},\"execution\":{\"framework\":\"deepspeed-2021\"},"
    "\"offload\":{\"scheme\":\"stronghold\"}}";

/* Nodes of one V100: each layer's gradients are reduced every micro-batch and leave, so that a GPU holds what it holds alone,
 * but for one layer's gradients on their way; four micro-batches reduce four times as much as one. */
static void windows_over_replicas(void)
{
    OrrArena *arena = orr_arena_new();
    const Report alone = report_of(text, SETS("training.micro_batch=1"), arena);
    const char *const replicas[] = {"training.micro_batch=1", "cluster.nodes=2", "parallel.zero=0",
                                    "training.global_batch=8", NULL};
    const char *const once[] = {"training.micro_batch=1", "cluster.nodes=2", "parallel.zero=0",
                                "training.global_batch=2", NULL};
    const Report both = report_of(text, replicas, arena), single = report_of(text, once, arena);
    const SimStage *stage = &both.plan.stages[0];
    double layer_bytes = 0;
    for (int i = 0; i < stage->segment_count; i++)
        layer_bytes = fmax(layer_bytes, 4 * stage->segments[i].dense_params);
    g_assert_cmpfloat(fabs(both.peak_bytes - alone.peak_bytes), <, 2 * layer_bytes);
    g_assert_cmpint(both.step_ps, >, alone.step_ps);
    g_assert_cmpint(both.step_ps, <, alone.step_ps * 6 / 5);
    g_assert_cmpint(both.part_ps[SIM_PART_DATA_COMM], >, 2 * single.part_ps[SIM_PART_DATA_COMM]);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/offload-window/replicas", windows_over_replicas);
    return g_test_run();
}
