/* tests/unit/exchange/test_import_scripts.c - launch scripts as people have them: variables with defaults, arrays,
 * options in quoted texts, here-documents, conditions, what only the environment knows. */
#include <string.h>

#include "exchange/exchange.h"
#include "exchange/shell.h"

/* --- words --- */

static void test_words(void)
{
    static const struct {
        const char *text, *want; /* words joined by "|", "." an end, "/" an end of line */
    } CASES[] = {
        {"a b  c", "a|b|c"},
        {"a 'b c' \"d e\"", "a|b c|d e"},
        {"--a 1 \\\n  --b 2\n", "--a|1|--b|2|/"},
        {"--a 1 \\\r\n  --b 2\r\n", "--a|1|--b|2|/"},
        {"X=3 # three\n--a $X --b ${X}4 --c '$X'", "X=3|/|--a|3|--b|34|--c|$X"},
        {"X=${1:-\"7\"}\n--a $X", "X=7|/|--a|7"},
        {"X=${HERE:-${THERE-5}}\n--a $X", "X=5|/|--a|5"},
        {": \"${T:=4}\" ${P=2}\n--a $T --b $P", ":|4|2|/|--a|4|--b|2"},
        {"T=8\n: ${T:=4}\n--a ${T:?none} --b ${U:?none} --c ${T:+1} --d${U:+2}",
         "T=8|/|:|8|/|--a|8|--b|${U:?none}|--c|1|--d"},
        {"N=4\nG=8\n--w $(($N*G)) --v $(( ${N} + (G - 2) / 3 ))", "N=4|/|G=8|/|--w|32|--v|6"},
        {"--w $((N/0)) --v $((", "--w|$((N/0))|--v|$(("},
        {"--a $NOWHERE --b $1 --c $(hostname -s) --d `date`",
         "--a|$NOWHERE|--b|$1|--c|$(hostname -s)|--d|`date`"},
        {"ARGS=(\n  --a 1\n  --b\n)\nrun ${ARGS[@]} \"$@\" --c\n", "--a|1|--b|.|run|--c|/"},
        {"A+=( \"--a x\" \"--b\" 2 )", "--a|x|.|--b|2|."},
        {"A=\" \\\n  --a 1 \\\n  --b 'x y' \\\n \"\nrun $A --c 2", "--a|1|--b|x y|.|run|--c|2"},
        {"cat <<EOT > f\n--a 1 it's\nEOT\n--b 2", "cat|.|f|/|--b|2"},
        {"run --a 1 2>&1 | tee log; run --b && x", "run|--a|1|.|1|.|tee|log|.|run|--b|.|x"},
        {"#SBATCH --nodes=48\nN=$SLURM_NNODES\n--n $N", "N=48|/|--n|48"},
        {"A=$A$A$A\n--x 'open", "A=$A$A$A|/|--x|open"},
        {"X=a\nif [ $X = a ]; then\n--a 1\nelif [ $X = b ]; then\n--b 2\nelse\n--c\nfi\n--d",
         "X=a|/|--a|1|/|--d"},
        {"X=c\nif [ $X = a ]; then\n--a 1\nelif [ $X = b ]; then\n--b 2\nelse\n--c\nfi\n--d",
         "X=c|/|--c|/|--d"},
        {"if [ $1 = a ]; then --a 1; else --b 2; fi\n--c", "--a|1|.|--b|2|.|--c"},
        {"set -- dlc '' 4\nif [[ $1 == d* && -z $2 ]] && [ $3 -gt 2 ];then\n--a $3 ${10}\nfi",
         "--a|4|${10}|/"},
        {"set -- a b c d e f g h i j\n--a $1 --b ${10} --c $10", "--a|a|--b|j|--c|a0"},
        {"set -- 1\nif [ ! -z $NOWHERE ] || [ $1 != 1 ]\nthen\n--a\nfi\nif [ -n \"$1\" ]; then --b; fi",
         "--b|."},
        {"S=7B\ncase $S in\n 3B|7B)\n  --a 7 ;;\n *)\n  --b 9 ;;\nesac\n--c", "S=7B|/|--a|7|.|--c"},
        {"S=9B\ncase \"${S}\" in\n 3B) --a 7 ;;\n *) --b 9 ;;\nesac\n--c", "S=9B|/|--b|9|.|--c"},
        {"case $1 in\n 3B) --a 7 ;;\n *) --b 9 ;;\nesac\n--c", "--a|7|.|--b|9|.|--c"},
        {"A=1\nif [ $A = 2 ]; then\n if [ x = x ]; then\n --a\n fi\n X=3\n Y=(--y 1)\nfi\n--b $X",
         "A=1|/|--b|$X"},
        {"if if if [ a = ]; then fi fi esac ;; case in", "fi|esac|."},
        {"", ""},
        {"\"\" ( ) ;;", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GPtrArray) words = shell_words(CASES[i].text, strlen(CASES[i].text));
        g_autoptr(GString) said = g_string_new(NULL);
        for (guint j = 0; j < words->len; j++) {
            const char *word = g_ptr_array_index(words, j);
            g_string_append_printf(said, "%s%s", j > 0 ? "|" : "",
                                   strcmp(word, SHELL_END) == 0    ? "."
                                   : strcmp(word, SHELL_LINE) == 0 ? "/"
                                                                   : word);
        }
        g_assert_cmpstr(said->str, ==, CASES[i].want);
    }
}

/* A value that doubles with every line stays small. */
static void test_words_that_grow(void)
{
    g_autoptr(GString) text = g_string_new("A=xxxxxxxx\n");
    for (int i = 0; i < 200; i++)
        g_string_append(text, "A=$A$A\n");
    g_autoptr(GPtrArray) words = shell_words(text->str, text->len);
    for (guint i = 0; i < words->len; i++)
        g_assert_cmpuint(strlen(g_ptr_array_index(words, i)), <, 1 << 18);
}

/* --- scripts --- */

static OrrJsonDoc *import(const char *script, GString *said)
{
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    GError *error = NULL;
    OrrJsonDoc *doc = exchange_import(script, strlen(script), "launch.sh", -1, NULL, &loss, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < loss.changes->len; i++)
        g_string_append_printf(said, "%s\n", (const char *)g_ptr_array_index(loss.changes, i));
    exchange_loss_write(&loss, said);
    return doc;
}

static void assert_at(const OrrJsonDoc *doc, const char *path, const char *want)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    const OrrJson *node = orr_json_root(doc);
    for (char **part = parts; *part != NULL && node != NULL; part++)
        node = orr_json_member(node, *part);
    g_autofree char *text = node != NULL ? orr_json_dump(node) : g_strdup("nothing");
    if (strcmp(text, want) != 0)
        g_error("%s is %s, not %s", path, text, want);
}

static const char arrays[] = "#!/bin/bash\n"
                             "export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}\n"
                             "CHECKPOINTS=${1:-\"ckpt/mine\"} # where it's kept\n"
                             "GPUS=8\nNODES=${NODES:-4}\nTP=4\nLAYERS=40\nDTYPE=\"fp8\"\n"
                             "LAUNCH=(\n  --nproc_per_node $GPUS\n  --nnodes $NODES\n)\n"
                             "MODEL=(\n  --num-layers $LAYERS\n  --hidden-size 5120 # wide\n"
                             "  --num-attention-heads 40\n  --attention-backend auto\n  --swiglu\n)\n"
                             "WORK=(\n  --micro-batch-size 2\n  --global-batch-size $((GPUS*NODES*8))\n"
                             "  --seq-length 4096\n  --bf16\n  --train-samples 1_000_000\n)\n"
                             "FP8=()\nif [[ \"$DTYPE\" == \"fp8\" ]]; then\n"
                             "  FP8+=(\n    \"--fp8-format hybrid\"\n    \"--fp8-param-gather\"\n  )\nfi\n"
                             "SHARD=(--use-distributed-optimizer --overlap-grad-reduce)\n"
                             "WORK+=(\"${SHARD[@]}\")\n"
                             "if [ ! -f x ]; then\n  echo \"there is no x\"\n  exit 1\nfi\n"
                             "torchrun ${LAUNCH[@]} pretrain_gpt.py \\\n"
                             "  ${MODEL[@]} ${WORK[@]} ${FP8[@]} \\\n"
                             "  --tensor-model-parallel-size $TP --sequence-parallel $EXTRA_ARGS\n"
                             "set +x\n";

static void test_arrays(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import(arrays, said);
    assert_at(doc, "cluster.nodes", "4");
    assert_at(doc, "cluster.gpus_per_node", "8");
    assert_at(doc, "model.layers", "40");
    assert_at(doc, "model.gated_mlp", "true");
    assert_at(doc, "training.global_batch", "256");
    assert_at(doc, "training.precision", "\"fp8\"");
    assert_at(doc, "training.tokens", "4096000000");
    assert_at(doc, "parallel.tensor", "4");
    assert_at(doc, "parallel.sequence_parallel", "true");
    assert_at(doc, "parallel.zero", "1");
    assert_at(doc, "execution.overlap", "[\"grad_reduce\"]");
    g_assert_null(strstr(said->str, "neither true nor false"));
    g_assert_null(strstr(said->str, "whole number"));
    orr_json_free(doc);
}

static const char texts[] =
    "#!/bin/bash\n#SBATCH --nodes=6\nset -x -e\n"
    "ADDRESS=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
    "NNODES=$SLURM_NNODES\nTP_SIZE=2\nPP_SIZE=3\nNLAYERS=24 # was 12\n"
    "OPTIMIZER_ARGS=\" \\\n    --optimizer adam \\\n    --lr 6e-5 \\\n    \"\n"
    "GPT_ARGS=\" \\\n    --pp-partition-method 'type:transformer|embedding' \\\n"
    "    --num-layers $NLAYERS \\\n    --hidden-size 2048 \\\n"
    "    --num-attention-heads 16 \\\n    --micro-batch-size 2 \\\n"
    "    --global-batch-size 96 \\\n    --seq-length 2048 \\\n"
    "    --embed-layernorm \\\n    --bf16 \\\n    --position-embedding-type alibi \\\n"
    "    --checkpoint-activations \\\n    --pad-vocab-size-to 250880 \\\n"
    "    $OPTIMIZER_ARGS \\\n    \"\n"
    "cat <<EOT > $config\n{ \"bf16\": { \"enabled\": true }, \"note\": \"it's --fp16\" }\nEOT\n"
    "export LAUNCHER=\"python -m torch.distributed.run \\\n    --nproc_per_node 8 \\\n"
    "    --nnodes $NNODES \\\n    \"\n"
    "export CMD=\" \\\n    `pwd`/pretrain_gpt.py \\\n"
    "    --tensor-model-parallel-size $TP_SIZE \\\n"
    "    --pipeline-model-parallel-size $PP_SIZE \\\n    $GPT_ARGS \\\n"
    "    --deepspeed \\\n    --zero-stage 0 \\\n    \"\n"
    "srun bash -c \"$LAUNCHER --node_rank \\$SLURM_PROCID $CMD\" 2>&1 | tee log.txt\n";

static void test_texts(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import(texts, said);
    assert_at(doc, "cluster.nodes", "6");
    assert_at(doc, "model.layers", "24");
    assert_at(doc, "model.vocab", "250880");
    assert_at(doc, "model.position", "\"alibi\"");
    assert_at(doc, "model.embedding_norm", "true");
    assert_at(doc, "training.precision", "\"bf16\"");
    assert_at(doc, "training.recompute", "\"full\"");
    assert_at(doc, "parallel.tensor", "2");
    assert_at(doc, "parallel.pipeline", "3");
    assert_at(doc, "parallel.zero", "1"); /* its bf16 optimizer shards whatever the stage */
    assert_at(doc, "execution.framework", "\"megatron-deepspeed\"");
    orr_json_free(doc);
}

/* What the file leaves to others is asked for by the scenario's key. */
static void test_left_to_others(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import("{\"train_batch_size\":\"auto\",\"train_micro_batch_size_per_gpu\":\"auto\","
                             "\"bf16\":{\"enabled\":\"auto\"},\"zero_optimization\":{\"stage\":3,"
                             "\"offload_optimizer\":{\"device\":\"cpu\",\"pin_memory\":true}}}",
                             said);
    assert_at(doc, "parallel.zero", "3");
    assert_at(doc, "training", "nothing");
    assert_at(doc, "execution.framework", "\"transformers-deepspeed\""); /* only its trainer knows "auto" */
    g_assert_nonnull(strstr(said->str, "--set training.global_batch=... --set training.micro_batch=... "
                                       "--set training.precision=..."));
    assert_at(doc, "offload.scheme", "\"zero3-offload\"");
    assert_at(doc, "offload.optimizer.tier", "\"host\"");
    assert_at(doc, "offload.weights.tier", "\"gpu\"");
    assert_at(doc, "offload.pinned", "true");
    orr_json_free(doc);
    doc = import(
        "{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":3,\"offload_optimizer\":{\"device\":"
        "\"nvme\",\"pipeline_read\":true,\"pipeline_write\":false}},"
        "\"aio\":{\"block_size\":131072,\"thread_count\":2,\"overlap_events\":false,\"single_submit\":true}}",
        said);
    assert_at(doc, "offload.aio.block_bytes", "131072");
    assert_at(doc, "offload.aio.queue_depth", "nothing"); /* DeepSpeed's default is the field's */
    assert_at(doc, "offload.aio.threads", "2");
    assert_at(doc, "offload.aio.overlap_events", "false");
    assert_at(doc, "offload.aio.pipeline_read", "true");
    assert_at(doc, "offload.aio.pipeline_write", "nothing"); /* false is the field's default */
    orr_json_free(doc);
    doc = import(
        "{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":1},\"aio\":{\"block_size\":131072}}", said);
    assert_at(doc, "offload", "nothing"); /* no disks: nothing reads them */
    orr_json_free(doc);
    doc = import("{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":1}}", said);
    assert_at(doc, "execution.framework", "\"deepspeed\"");
    orr_json_free(doc);
    doc =
        import("run --num-layers 32 --hidden-size 512 --fine-grained-activation-offloading --offload-modules "
               "core_attn expert_fc1",
               said);
    assert_at(doc, "offload.activations.tier", "\"host\"");
    assert_at(doc, "offload.activations.modules", "[\"core_attn\",\"expert_fc1\"]");
    orr_json_free(doc);
    doc = import(
        "run --num-layers 32 --hidden-size 512 --optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d",
        said);
    assert_at(doc, "offload.scheme", "\"zero-offload\"");
    assert_at(doc, "offload.overlap_update", "true");
    orr_json_free(doc);
    doc = import("run --num-layers 32 --hidden-size 512 --overlap-cpu-optimizer-d2h-h2d", said);
    assert_at(doc, "offload", "nothing"); /* no copies to overlap */
    orr_json_free(doc);
    g_string_truncate(said, 0);
    doc = import("run --num-layers $LAYERS --hidden-size 512 --use-flash-attn --recompute-activations", said);
    g_assert_nonnull(strstr(said->str, "num-layers: $LAYERS is not set in the file"));
    assert_at(doc, "execution.attention", "\"flash2\"");
    assert_at(doc, "training.recompute", "\"selective\"");
    assert_at(doc, "execution.framework.defaults.recipe_overlap", "[]"); /* a launch has on what it names */
    assert_at(doc, "execution.framework.pipeline.deferred_head_gradients", "0");
    orr_json_free(doc);
}

/* What TOML, YAML and bash allow and few files use means what it means there. */
static void test_syntax(void)
{
    static const struct {
        const char *text, *key, *want;
        int format;
    } cases[] = {
        {"[training]\nseq_len = 2048\n[model]\nname = 'llama3'\nflavor = \"\"\"8B\"\"\"\n", "model",
         "\"llama3-8b\"", EXCHANGE_FORMAT_TORCHTITAN},
        {"[ model ]\nname = \"llama3\"\nflavor = '''\n8B'''\n[training]\nseq_len = 2048\n", "model",
         "\"llama3-8b\"", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 2048\n[model]\nconverters = [\n  \"float8\", # one\n]\n[float8]\nrecipe_name "
         "= "
         "\"rowwise\"\n",
         "training.precision", "\"fp8-rowwise\"", EXCHANGE_FORMAT_TORCHTITAN},
        {"training = { seq_len = 2048, local_batch_size = 3 }\n[parallelism]\ntensor_parallel_degree = 2\n",
         "training.micro_batch", "3", EXCHANGE_FORMAT_TORCHTITAN},
        {"parallelism: &p {dp: 2, tp: 2, tp_mode: REDUCE_SCATTER,\n  tp_linear_async_communication: true}\n"
         "tokens: {sequence_length: 1024, micro_batch_size: 1}\n",
         "parallel.tensor", "2", EXCHANGE_FORMAT_NANOTRON},
        {"parallelism: &p\n  dp: 2\n  tp: 2\n  tp_linear_async_communication: yes\n", "execution.overlap",
         "[\"tensor\"]", EXCHANGE_FORMAT_NANOTRON},
        {"--num-layers 2 --hidden-size 64 --use-rotary-position-embeddings --no-position-embedding",
         "model.position", "\"rope\"", EXCHANGE_FORMAT_MEGATRON},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(ExchangeLoss) loss;
        GError *error = NULL;
        exchange_loss_init(&loss);
        OrrJsonDoc *doc = exchange_import(cases[i].text, strlen(cases[i].text), "file", cases[i].format, NULL,
                                          &loss, &error);
        g_assert_no_error(error);
        assert_at(doc, cases[i].key, cases[i].want);
        orr_json_free(doc);
    }
}

/* Checkpoints that are divided over tensor ranks, and that wait on the host. */
static void test_checkpoints(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc =
        import("{\"train_batch_size\":8,\"activation_checkpointing\":{\"partition_activations\":true,"
               "\"cpu_checkpointing\":true,\"number_checkpoints\":4}}",
               said);
    assert_at(doc, "training.recompute.mode", "\"full\"");
    assert_at(doc, "training.recompute.partitioned", "true");
    assert_at(doc, "offload.activations.tier", "\"host\"");
    orr_json_free(doc);
    doc = import("{\"train_batch_size\":8,\"activation_checkpointing\":{\"partition_activations\":false}}",
                 said);
    assert_at(doc, "training.recompute", "nothing");
    orr_json_free(doc);
    doc = import(
        "run --num-layers 32 --hidden-size 512 --recompute-granularity full --recompute-method uniform "
        "--recompute-num-layers 1 --distribute-saved-activations",
        said);
    assert_at(doc, "training.recompute.partitioned", "true");
    assert_at(doc, "training.recompute.layers", "0");
    orr_json_free(doc);
}

/* A recipe's configuration written by itself: objects of Megatron-Bridge, and of NeMo 2, whose model is a class. */
static void test_dumps(void)
{
    static const char bridge[] =
        "_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n"
        "  _target_: megatron.bridge.models.llama.llama_provider.Llama3ModelProvider8B\n"
        "  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n  seq_length: 8192\n"
        "  tensor_model_parallel_size: 2\n  hidden_dropout: 0.0\n  virtual_pipeline_model_parallel_size: "
        "null\n"
        "train:\n  micro_batch_size: 1\n  global_batch_size: 512\n"
        "mixed_precision:\n  _target_: megatron.bridge.training.mixed_precision.MixedPrecisionConfig\n"
        "  bf16: true\n  fp8: hybrid\n  fp8_recipe: tensorwise\n";
    static const char nemo[] =
        "_target_: nemo.collections.llm.api.pretrain\ndata:\n  seq_length: 4096\n  global_batch_size: 64\n"
        "model:\n  _target_: nemo.collections.llm.gpt.model.llama.LlamaModel\n"
        "  config:\n    _target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B\n"
        "trainer:\n  num_nodes: 4\n  devices: 8\n  plugins:\n    precision: bf16-mixed\n"
        "  strategy:\n    pipeline_model_parallel_size: 2\n";
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import(bridge, said);
    assert_at(doc, "model.layers", "32");
    assert_at(doc, "parallel.tensor", "2");
    assert_at(doc, "parallel.virtual_stages", "nothing");
    assert_at(doc, "training.global_batch", "512");
    assert_at(doc, "training.precision", "\"fp8-cs\"");
    orr_json_free(doc);
    doc = import(nemo, said);
    assert_at(doc, "model.preset", "\"llama3-8b\"");
    assert_at(doc, "training.sequence_length", "4096");
    assert_at(doc, "training.precision", "\"bf16\"");
    assert_at(doc, "parallel.pipeline", "2");
    assert_at(doc, "cluster.nodes", "4");
    orr_json_free(doc);
}

#define RAMPED                                                                                               \
    "run --num-layers 32 --hidden-size 512 --seq-length 1024 --micro-batch-size 2 --global-batch-size 512 "  \
    "--rampup-batch-size "

/* A batch that grows, where it leads to the run's own in whole micro-batches and the run has an end. */
static void test_ramp(void)
{
    static const struct {
        const char *script, *want, *said;
    } rows[] = {
        {RAMPED "32 16 100000 --train-samples 1000000",
         "[{\"global_batch\":32,\"by\":16,\"samples\":100000}]", NULL},
        {RAMPED "32 16 100000", "nothing", "without train-samples"},
        {RAMPED "32 17 100000 --train-samples 1000000", "nothing", "not a start, increment and samples"},
        {RAMPED "33 479 100000 --train-samples 1000000", "nothing", "not a start, increment and samples"},
        {RAMPED "512 16 100000 --train-samples 1000000", "nothing", "not a start, increment and samples"},
        {RAMPED "32 16 --train-samples 1000000", "nothing", "not a start, increment and samples"},
        {RAMPED "32 $BY 100000 --train-samples 1000000", "nothing", "not a start, increment and samples"},
        {RAMPED "32 0 100000 --train-samples 1000000", "nothing", "not a start, increment and samples"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GString) said = g_string_new(NULL);
        OrrJsonDoc *doc = import(rows[i].script, said);
        assert_at(doc, "training.batch_schedule", rows[i].want);
        g_assert_true(rows[i].said == NULL || strstr(said->str, rows[i].said) != NULL);
        orr_json_free(doc);
    }
}

/* A script of the shell that holds Python is a script of the shell. */
static void test_python_inside(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import("#!/bin/bash\npython - <<E\nimport os\ndef f():\n    pass\nE\n"
                             "torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024\n",
                             said);
    assert_at(doc, "model.layers", "24");
    orr_json_free(doc);
}

/* A recipe that is code is refused with the way to write it as YAML. */
static void test_python(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n", "to_yaml("},
        {"import nemo_run as run\nfrom nemo.collections import llm\n\ndef main():\n", "--to-yaml"},
        {"import torch\n\ndef main():\n    pass\n", "is a program in Python"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(ExchangeLoss) loss;
        GError *error = NULL;
        exchange_loss_init(&loss);
        g_assert_null(
            exchange_import(cases[i].text, strlen(cases[i].text), "recipe.py", -1, NULL, &loss, &error));
        g_assert_nonnull(error);
        g_assert_nonnull(strstr(error->message, cases[i].want));
        g_clear_error(&error);
    }
}

/* A script that picks its model by its second word, as Pai-Megatron-Patch's do. */
static const char called[] =
    "set -- dlc A3B 2 64\nSIZE=$2\nBATCH=$3\nGLOBAL=$4\nEXTRA=293\n"
    "if [ $SIZE = 0.6B ]; then\n    LAYERS=28\n    HIDDEN=1024\n    moe_options=\"\"\n"
    "elif [ $SIZE = A3B ]; then\n    LAYERS=48\n    HIDDEN=2048\n"
    "    moe_options=\" \\\n        --num-experts 128 \\\n        --moe-router-topk 8 \\\n"
    "        --moe-layer-freq '([0]*1+[1]*47)'\"\nelse\n    LAYERS=94\n    HIDDEN=4096\nfi\n"
    "if [ $BATCH -gt 1 ]; then\n    AC=\" --recompute-granularity selective\"\nfi\n"
    "run --num-layers ${LAYERS} --hidden-size ${HIDDEN} --num-attention-heads 32 \\\n"
    "  --micro-batch-size $BATCH --global-batch-size $GLOBAL --seq-length 1024 \\\n"
    "  --patch-tokenizer-type Qwen2Tokenizer --extra-vocab-size $EXTRA --multi-latent-attention "
    "${moe_options} $AC\n";

static void test_called(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    OrrJsonDoc *doc = import(called, said);
    assert_at(doc, "model.layers", "48");
    assert_at(doc, "model.hidden", "2048");
    assert_at(doc, "model.vocab", "151936");
    assert_at(doc, "model.moe.experts", "128");
    assert_at(doc, "model.moe.dense_layers", "1");
    assert_at(doc, "model.mla.kv_lora_rank", "512");
    assert_at(doc, "model.mla.qk_rope_head_dim", "64");
    assert_at(doc, "training.micro_batch", "2");
    assert_at(doc, "training.global_batch", "64");
    assert_at(doc, "training.recompute", "\"selective\"");
    g_assert_null(strstr(said->str, "is not set in the file"));
    orr_json_free(doc);
}

/* Where experts begin, the steps of a batch, GPT-2's words by their file of merges. */
static void test_newer_flags(void)
{
    static const struct {
        const char *freq, *dense;
    } rows[] = {{"[1]*4", "0"},
                {"([1]*4)", "0"},
                {"'[0]*3+[1]*1'", "3"},
                {"[0,0,1,1]", "2"},
                {"1", "0"},
                {"'([0]*1+[1]*3'", "1"},
                {"'[1]*3+[0]*1'", "nothing"},
                {"[1", "nothing"},
                {"'[2]*4'", "nothing"}};
    const char *shape =
        "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 1000 --num-experts 8";
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GString) said = g_string_new(NULL);
        g_autofree char *script = g_strdup_printf("%s --moe-layer-freq %s\n", shape, rows[i].freq);
        OrrJsonDoc *doc = import(script, said);
        assert_at(doc, "model.moe.dense_layers", rows[i].dense);
        orr_json_free(doc);
    }
    g_autoptr(GString) said = g_string_new(NULL);
    g_autofree char *script = g_strdup_printf(
        "%s --merge-file m --train-samples 1000000 --step-batch-size-schedule '0:16 2M:320 4M:512'\n", shape);
    OrrJsonDoc *doc = import(script, said);
    assert_at(doc, "model.vocab", "50304");
    assert_at(doc, "training.global_batch", "512");
    assert_at(doc, "training.batch_schedule",
              "[{\"global_batch\":16,\"tokens\":2000000},{\"global_batch\":320,\"tokens\":2000000}]");
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import/words", test_words);
    g_test_add_func("/import/words-that-grow", test_words_that_grow);
    g_test_add_func("/import/arrays", test_arrays);
    g_test_add_func("/import/texts", test_texts);
    g_test_add_func("/import/left-to-others", test_left_to_others);
    g_test_add_func("/import/syntax", test_syntax);
    g_test_add_func("/import/checkpoints", test_checkpoints);
    g_test_add_func("/import/dumps", test_dumps);
    g_test_add_func("/import/python", test_python);
    g_test_add_func("/import/python-inside", test_python_inside);
    g_test_add_func("/import/ramp", test_ramp);
    g_test_add_func("/import/called", test_called);
    g_test_add_func("/import/newer-flags", test_newer_flags);
    return g_test_run();
}
