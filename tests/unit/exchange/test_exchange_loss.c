/* tests/unit/exchange/test_exchange_loss.c - nothing passes silently: what imports and exports name, and in which
 * part. */
#include <math.h>
#include <string.h>

#include "exchange/exchange.h"
#include "report/report.h"
#include "spec/load.h"
#include "tests/unit/exchange_fixture.h"

static char *joined(const GPtrArray *list)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(list, i));
    return g_string_free(text, FALSE);
}

static OrrJsonDoc *imported(const char *text, int format, ExchangeLoss *loss)
{
    GError *error = NULL;
    OrrJsonDoc *doc = exchange_import(text, strlen(text), "file", format, NULL, loss, &error);
    g_assert_no_error(error);
    return doc;
}

static const OrrJson *at(const OrrJsonDoc *doc, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    const OrrJson *node = orr_json_root(doc);
    for (char **part = parts; *part != NULL && node != NULL; part++)
        node = orr_json_member(node, *part);
    return node;
}

static void assert_at(const OrrJsonDoc *doc, const char *path, const char *want)
{
    const OrrJson *node = at(doc, path);
    g_autofree char *shown = node != NULL ? orr_json_dump(node) : g_strdup("nothing");
    if (strcmp(shown, want) != 0)
        g_error("%s: %s, not %s", path, shown, want);
}

/* --- imports --- */

static void test_imports(void)
{
    static const struct {
        const char *text, *changes, *harmless; /* NULL: that part says nothing */
        int format;
    } cases[] = {
        {"--num-layers 2 --micro-batch-size 1 --frobnicate 3", "frobnicate", NULL, EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --wandb-project x --lr 1e-4 --save-interval 5", NULL, "wandb-project",
         EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --train-iters 100", NULL, "train-iters", EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --use-megatron-fsdp --ckpt-format fsdp_dtensor", NULL, NULL,
         EXCHANGE_FORMAT_MEGATRON},
        {"model.num_layers=2 model.frobnicate=1", "model.frobnicate", NULL, EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"{\"train_batch_size\":8,\"train_micro_batch_size_per_gpu\":1,\"steps_per_print\":10}", NULL,
         "steps_per_print", EXCHANGE_FORMAT_DEEPSPEED},
        {"{\"train_batch_size\":8,\"train_micro_batch_size_per_gpu\":1,\"sparse_attention\":{\"mode\":"
         "\"fixed\"}}",
         "sparse_attention.mode", NULL, EXCHANGE_FORMAT_DEEPSPEED},
        {"{\"train_batch_size\":8,\"train_micro_batch_size_per_gpu\":1,\"zero_optimization\":{\"stage\":2,"
         "\"reduce_bucket_size\":100,\"allgather_bucket_size\":200}}",
         "one bucket size", NULL, EXCHANGE_FORMAT_DEEPSPEED},
        {"{\"train_batch_size\":256,\"train_micro_batch_size_per_gpu\":4,\"gradient_accumulation_steps\":3}",
         "DeepSpeed refuses that", NULL, EXCHANGE_FORMAT_DEEPSPEED},
        {"{\"train_batch_size\":256,\"train_micro_batch_size_per_gpu\":4,\"gradient_accumulation_steps\":8}",
         NULL, NULL, EXCHANGE_FORMAT_DEEPSPEED},
        {"--num-layers 2 --micro-batch-size 1 --transformer-impl transformer_engine --attention-backend "
         "fused "
         "--use-flash-attn --moe-token-dispatcher-type flex --moe-enable-deepep",
         NULL, NULL, EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --micro-batch-size 1 --transformer-impl local", "simulated as Transformer Engine's",
         NULL, EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --micro-batch-size 1 --profile-step-start 4 --manual-gc", NULL, "profile-step-start",
         EXCHANGE_FORMAT_MEGATRON},
        {"parallelism:\n  dp: 2\ncheckpoints: ~\nmodel:\n  model_config: {frobnicate: {a: 1}, hidden_size: "
         "8}\n",
         "model.model_config.frobnicate.a", NULL, EXCHANGE_FORMAT_NANOTRON},
        {"[training]\nseq_len = 8_192\n[metrics]\nlog_freq = 1\n", NULL, "metrics.log_freq",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\n[parallelism]\nfrobnicate = 1\n", "parallelism.frobnicate", NULL,
         EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\nenable_cpu_offload = true\n", "training.enable_cpu_offload", NULL,
         EXCHANGE_FORMAT_TORCHTITAN},
        {"parallelism:\n  dp: 2\n  frobnicate: 1\nlogging:\n  log_level: info\n", "parallelism.frobnicate",
         "logging.log_level", EXCHANGE_FORMAT_NANOTRON},
        {"{\"model_type\":\"llama\",\"hidden_size\":8,\"num_attention_heads\":1,\"intermediate_size\":8,"
         "\"num_hidden_layers\":1,\"vocab_size\":8,\"frobnicate\":1,\"rms_norm_eps\":1e-5}",
         "frobnicate", "rms_norm_eps", EXCHANGE_FORMAT_HF},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        orr_json_free(imported(cases[i].text, cases[i].format, &loss));
        g_autofree char *changes = joined(loss.changes), *harmless = joined(loss.harmless);
        g_test_message("%s: %s| %s", cases[i].text, changes, harmless);
        if (cases[i].changes != NULL)
            g_assert_nonnull(strstr(changes, cases[i].changes));
        else
            g_assert_cmpstr(changes, ==, "");
        if (cases[i].harmless != NULL)
            g_assert_nonnull(strstr(harmless, cases[i].harmless));
        else
            g_assert_cmpstr(harmless, ==, "");
    }
}

static void test_values(void)
{
    static const struct {
        const char *text, *key, *want;
        int format;
    } cases[] = {
        {"--seq-length 4096 --global-batch-size 256 --micro-batch-size 1 --train-iters 1000",
         "training.tokens", "1048576000", EXCHANGE_FORMAT_MEGATRON},
        {"model.seq_length=4096 train.global_batch_size=256 train.train_iters=1000", "training.tokens",
         "1048576000", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"[training]\nseq_len = 4096\nglobal_batch_size = 256\nsteps = 1_000\n", "training.tokens",
         "1048576000", EXCHANGE_FORMAT_TORCHTITAN},
        {"parallelism:\n  dp: 2\ntokens:\n  micro_batch_size: 1\n  batch_accumulation_per_replica: 2\n"
         "  sequence_length: 1024\n  train_steps: 10\n",
         "training.tokens", "40960", EXCHANGE_FORMAT_NANOTRON},
        {"[training]\nseq_len = 0x800\nsteps = 100  # placeholder: give your own\nglobal_batch_size = 8\n",
         "training.tokens", "nothing", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 0x800\n", "training.sequence_length", "2048", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 0b1000_0000\n", "training.sequence_length", "128",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 0o4000\n", "training.sequence_length", "2048", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = +8_192\n", "training.sequence_length", "8192", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\n", "training.recompute",
         "{\"mode\":\"selective-layer\",\"every_n_layers\":2}", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\n", "execution.overlap", "[\"grad_reduce\",\"param_gather\"]",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\n[parallelism]\ndata_parallel_replicate_degree = "
         "2\ndata_parallel_shard_degree = 1\n",
         "execution.overlap", "[\"grad_reduce\"]", EXCHANGE_FORMAT_TORCHTITAN},
        {"[training]\nseq_len = 8192\n", "parallel.zero", "3", EXCHANGE_FORMAT_TORCHTITAN},
        {"{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":2,\"reduce_bucket_size\":5e8}}",
         "execution.framework.data_parallel.bucket_bytes", "1000000000", EXCHANGE_FORMAT_DEEPSPEED},
        {"{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":3,\"overlap_comm\":true}}",
         "execution.overlap", "[\"grad_reduce\",\"param_gather\"]", EXCHANGE_FORMAT_DEEPSPEED},
        {"--num-layers 2 --use-distributed-optimizer --use-megatron-fsdp --no-gradient-accumulation-fusion",
         "execution.framework.kernels.gradient_sum", "\"pass\"", EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2", "model.dropout_frac", "0.1", EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --hidden-dropout 0", "model.dropout_frac", "0", EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 2 --tensor-model-parallel-size 4 --tokenizer-type GPT2BPETokenizer", "model.vocab",
         "50688", EXCHANGE_FORMAT_MEGATRON}, /* 99 x 4 x 128 */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        OrrJsonDoc *doc = imported(cases[i].text, cases[i].format, &loss);
        assert_at(doc, cases[i].key, cases[i].want);
        orr_json_free(doc);
    }
}

/* Escapes of a terminal, names without end, thousands of lines that say nothing. */
static void test_hostile(void)
{
    g_autoptr(GString) text = g_string_new("--num-layers 2 --fo\033[31mo\302\2331m 3 --");
    for (int i = 0; i < 1000000; i++)
        g_string_append_c(text, 'k');
    for (int i = 0; i < 3000; i++)
        g_string_append_printf(text, " --unknown-%d %d", i, i);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    orr_json_free(imported(text->str, EXCHANGE_FORMAT_MEGATRON, &loss));
    g_autoptr(GString) report = g_string_new(NULL);
    exchange_loss_write(&loss, report);
    g_assert_cmpuint(report->len, <, 5000);
    g_assert_cmpuint(report->len, >, 100);
    for (const char *c = report->str; *c != '\0'; c = g_utf8_next_char(c))
        g_assert_true(*c == '\n' || !g_unichar_iscntrl(g_utf8_get_char(c)));
    g_autoptr(GString) lines = g_string_new("[training]\nseq_len = 8\n");
    for (int i = 0; i < 5000; i++)
        g_string_append(lines, "nothing here\n");
    g_auto(ExchangeLoss) many;
    exchange_loss_init(&many);
    orr_json_free(imported(lines->str, EXCHANGE_FORMAT_TORCHTITAN, &many));
    g_assert_cmpuint(many.changes->len, <, 40);
}

/* --- exports --- */

#define SCENARIO                                                                                             \
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"training\":{\"sequence_"   \
    "length\":4096,"                                                                                         \
    "\"global_batch\":128,\"micro_batch\":1},\"parallel\":{\"tensor\":1,\"zero\":3},"                        \
    "\"execution\":{\"framework\":\"%s\",\"overlap\":[\"grad_reduce\",\"param_gather\"]}}"

typedef struct Exported {
    GString *text;
    ExchangeLoss loss;
    OrrJsonDoc *doc;
    Spec *spec;
    char *error;
} Exported;

static Exported exported(const char *framework, const char *const *sets, ExchangeFormat format)
{
    Exported result = {.text = g_string_new(NULL), .spec = g_new0(Spec, 1)};
    g_auto(GStrv) parts = g_strsplit(SCENARIO, "%s", 2);
    g_autofree char *text = g_strconcat(parts[0], framework, parts[1], NULL);
    GError *error = NULL;
    exchange_loss_init(&result.loss);
    result.doc = orr_json_parse(text, strlen(text), "scenario", &error);
    g_assert_no_error(error);
    for (int i = 0; sets != NULL && sets[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(sets[i], "=", 2);
        g_assert_true(orr_json_set(result.doc, pair[0], pair[1], NULL));
    }
    spec_load_json(orr_json_root(result.doc), "scenario", NULL, false, result.spec, NULL, &error);
    g_assert_no_error(error);
    if (!exchange_export(result.spec, orr_json_root(result.doc), format, result.text, &result.loss, &error)) {
        result.error = g_strdup(error->message);
        g_error_free(error);
    }
    return result;
}

static void exported_clear(Exported *result)
{
    g_string_free(result->text, TRUE);
    exchange_loss_clear(&result->loss);
    orr_json_free(result->doc);
    g_free(result->spec);
    g_free(result->error);
}

static void test_refusals(void)
{
    static const struct {
        const char *framework, *sets[5], *key;
        ExchangeFormat format;
    } cases[] = {
        {"deepspeed", {"training.precision=fp8"}, "training.precision", EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed",
         {"parallel.zero=1", "parallel.pipeline=4"},
         "parallel.pipeline",
         EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed",
         {"parallel.zero=1", "parallel.context=2"},
         "parallel.context",
         EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed", {"training.recompute=selective"}, "training.recompute", EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed",
         {"parallel.secondary_weight_shard=true", "cluster.gpus_per_node=1", "cluster.nodes=16"},
         "parallel.secondary_weight_shard",
         EXCHANGE_FORMAT_DEEPSPEED},
        {"torchtitan",
         {"parallel.zero_group_gpus=1"},
         "parallel.zero_group_gpus",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan",
         {"parallel.zero=0", "parallel.tensor=2", "parallel.sequence_parallel=true"},
         "parallel.zero",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan",
         {"parallel.tensor=2", "parallel.sequence_parallel=true", "execution.compiled=false",
          "execution.overlap=[\"grad_reduce\",\"param_gather\",\"tensor\"]"},
         "execution.overlap",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"nanotron", {"parallel.zero=1", "parallel.context=2"}, "parallel.context", EXCHANGE_FORMAT_NANOTRON},
        {"megatron-core", {"training.optimizer=muon"}, "training.optimizer", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"execution.overlap=[\"param_gather\"]"},
         "execution.overlap",
         EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "parallel.pipeline=2", "parallel.schedule=zb-h1"},
         "parallel.schedule",
         EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"megatron-core",
         {"model={\"preset\":\"mixtral-8x7b\",\"moe\":{\"by_layer\":[{\"experts\":16},{\"top_k\":1}]}}"},
         "model.moe.by_layer",
         EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"model={\"preset\":\"mixtral-8x7b\",\"moe\":{\"by_layer\":[{\"experts\":16},{\"top_k\":1}]}}"},
         "model.moe.by_layer",
         EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"torchtitan",
         {"model={\"preset\":\"mixtral-8x7b\",\"moe\":{\"by_layer\":[{\"experts\":16},{\"top_k\":1}]}}"},
         "model.moe.by_layer",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"megatron-core",
         {"model={\"preset\":\"mixtral-8x7b\",\"moe\":{\"late_layers\":4,\"late_experts\":16}}"},
         "model.moe.late_layers",
         EXCHANGE_FORMAT_MEGATRON},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Exported result = exported(cases[i].framework, cases[i].sets, cases[i].format);
        g_assert_nonnull(result.error);
        g_test_message("%s", result.error);
        g_assert_nonnull(strstr(result.error, cases[i].key));
        g_assert_cmpuint(result.text->len, ==, 0);
        exported_clear(&result);
    }
}

/* A number format that nothing turns on is told. */
static void test_idle_format(void)
{
    static const struct {
        const char *text;
        bool told;
    } cases[] = {{"[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n", true},
                 {"[quantize.linear.mx]\nrecipe_name = \"mxfp8_cublas\"\n", true},
                 {"[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\n"
                  "enable_fsdp_float8_all_gather = true\n",
                  false}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        orr_json_free(imported(cases[i].text, EXCHANGE_FORMAT_TORCHTITAN, &loss));
        g_autofree char *changes = joined(loss.changes);
        g_assert_true((strstr(changes, "so that it is off") != NULL) == cases[i].told);
    }
}

static void test_demands(void)
{
    static const struct {
        const char *framework, *sets[3], *text; /* a line that is there, with '!' one that is not */
        ExchangeFormat format;
    } cases[] = {
        {"megatron-core", {NULL}, "--ckpt-format fsdp_dtensor", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "--no-gradient-accumulation-fusion", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "export CUDA_DEVICE_MAX_CONNECTIONS=32", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "parallel.tensor=2"},
         "export CUDA_DEVICE_MAX_CONNECTIONS=1\n",
         EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "parallel.sequence_parallel=true"},
         "!--sequence-parallel",
         EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "--lr 1.0e-4  # placeholder", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "--mock-data  # placeholder", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "--train-iters 100  # placeholder", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {"training.tokens=1e9"}, "--train-samples 244141\n", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core", {NULL}, "train.train_iters=100  # placeholder", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"deepspeed", {NULL}, "\"orrery_placeholders\": [", EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed", {NULL}, "\"reduce_bucket_size\": 200000000", EXCHANGE_FORMAT_DEEPSPEED},
        {"torchtitan", {NULL}, "steps = 100  # placeholder", EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {NULL}, "flavor = \"8B\"", EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {"model=mistral-7b"}, "!flavor", EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {"training.precision=fp8-tensorwise"}, "!recipe_name", EXCHANGE_FORMAT_TORCHTITAN},
        {"nanotron", {"parallel.zero=1"}, "learning_rate: 1.0e-4  # placeholder", EXCHANGE_FORMAT_NANOTRON},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Exported result = exported(cases[i].framework, cases[i].sets, cases[i].format);
        const bool absent = cases[i].text[0] == '!';
        g_assert_cmpstr(result.error, ==, NULL);
        g_test_message("%s", cases[i].text);
        g_assert_true((strstr(result.text->str, cases[i].text + (absent ? 1 : 0)) == NULL) == absent);
        exported_clear(&result);
    }
}

static void test_exports(void)
{
    static const struct {
        const char *framework, *sets[3], *changes; /* NULL: none */
        ExchangeFormat format;
    } cases[] = {
        {"megatron-core", {"parallel.zero=1"}, NULL, EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "parallel.order=tp-cp-ep-dp-pp"},
         NULL,
         EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "training.document_tokens=512"},
         "training.document_tokens",
         EXCHANGE_FORMAT_MEGATRON},
        {"deepspeed", {"parallel.zero=1"}, "execution.framework: deepspeed", EXCHANGE_FORMAT_MEGATRON},
        {"megatron-core",
         {"parallel.zero=1", "execution.framework={\"preset\":\"megatron-core\",\"host\":"
                             "{\"kernel_gap_s\":1e-6}}"},
         "execution.framework.host.kernel_gap_s",
         EXCHANGE_FORMAT_MEGATRON},
        {"deepspeed",
         {"training.recompute=full"},
         "training.recompute: full: the training script",
         EXCHANGE_FORMAT_DEEPSPEED},
        {"deepspeed",
         {NULL},
         "training.sequence_length: llama3-8b at 4096 tokens",
         EXCHANGE_FORMAT_DEEPSPEED},
        {"torchtitan", {NULL}, NULL, EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {"model=mistral-7b"}, "not one of torchtitan's own", EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan",
         {"execution.overlap=[]"},
         "execution.overlap: without grad_reduce",
         EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {"execution.attention=flash3"}, "execution.attention", EXCHANGE_FORMAT_TORCHTITAN},
        {"nanotron", {"parallel.zero=1"}, "execution.overlap: param_gather", EXCHANGE_FORMAT_NANOTRON},
        {"nanotron", {"parallel.zero=1", "execution.overlap=[]"}, NULL, EXCHANGE_FORMAT_NANOTRON},
        /* what surrounds a job */
        {"megatron-core", {"parallel.zero=1", "jitter=slow-machines"}, "jitter:", EXCHANGE_FORMAT_MEGATRON},
        {"deepspeed", {"data={\"tokens_per_s\":1e5}"}, "data:", EXCHANGE_FORMAT_DEEPSPEED},
        {"torchtitan", {"faults=llama3-2024"}, "faults:", EXCHANGE_FORMAT_TORCHTITAN},
        {"torchtitan", {"storage=tectonic"}, "storage:", EXCHANGE_FORMAT_TORCHTITAN},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Exported result = exported(cases[i].framework, cases[i].sets, cases[i].format);
        g_assert_cmpstr(result.error, ==, NULL);
        g_autofree char *changes = joined(result.loss.changes);
        g_test_message("%s as %s: %s", cases[i].framework,
                       orr_word(&exchange_words_format, (int)cases[i].format), changes);
        if (cases[i].changes != NULL)
            g_assert_nonnull(strstr(changes, cases[i].changes));
        else
            g_assert_cmpstr(changes, ==, "");
        exported_clear(&result);
    }
}

static void test_launch(void)
{
    static const char *const both[] = {"--nnodes 2 --nproc-per-node 8", "--rdzv-backend c10d",
                                       "CONFIG='dir/it'\\''s.sh'", "# placeholder", "NCCL_"};
    for (int format = 0; format < EXCHANGE_FORMAT_VERL; format++) { /* what holds one step */
        const char *const sets[] = {"parallel.zero=1", NULL};
        Exported result = exported("megatron-core", format == EXCHANGE_FORMAT_TORCHTITAN ? NULL : sets,
                                   (ExchangeFormat)format);
        g_assert_cmpstr(result.error, ==, NULL);
        for (int launch = 0; launch < EXCHANGE_LAUNCH_COUNT; launch++) {
            g_autoptr(GString) script = g_string_new(NULL);
            GError *error = NULL;
            exchange_export_launch(result.spec, (ExchangeFormat)format, (ExchangeLaunch)launch, "dir/it's.sh",
                                   script, &error);
            g_assert_no_error(error);
            for (gsize i = 0; i < G_N_ELEMENTS(both); i++)
                g_assert_nonnull(strstr(script->str, both[i]));
            g_assert_true((strstr(script->str, "#SBATCH --nodes=2") != NULL) ==
                          (launch == EXCHANGE_LAUNCH_SBATCH));
        }
        exported_clear(&result);
    }
}

/* --- predictions --- */

static double step_of(const OrrJsonDoc *doc, const char *const *sets)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    spec_load_json(orr_json_root(doc), "imported", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error);
    g_assert_no_error(error);
    const double step_s = (double)report.step_ps * 1e-12;
    orr_arena_free(arena);
    return step_s;
}

/* FSDP2 overlaps by itself: a file that has no word for it predicts the same as one that asks for both. */
static void test_torchtitan(void)
{
    static const char toml[] =
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 2\n"
        "seq_len = 8192\n[parallelism]\ndata_parallel_shard_degree = 64\n"
        "enable_async_tensor_parallel = true\n[compile]\nenable = true\n";
    const char *const cluster = "cluster={\"preset\":\"dgx-h100\",\"nodes\":8}";
    const char *const silent[] = {cluster, NULL},
                      *const both[] = {cluster, "execution.overlap=[\"grad_reduce\",\"param_gather\"]", NULL},
                      *const none[] = {cluster, "execution.overlap=[\"tensor\"]", NULL};
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = imported(toml, -1, &loss);
    const double as_imported = step_of(doc, silent);
    g_test_message("%.3f s, without overlap %.3f s", as_imported, step_of(doc, none));
    g_assert_cmpfloat(as_imported, ==, step_of(doc, both));
    g_assert_cmpfloat(as_imported * 1.05, <, step_of(doc, none));
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange-loss/imports", test_imports);
    g_test_add_func("/exchange-loss/values", test_values);
    g_test_add_func("/exchange-loss/hostile", test_hostile);
    g_test_add_func("/exchange-loss/refusals", test_refusals);
    g_test_add_func("/exchange-loss/idle-format", test_idle_format);
    g_test_add_func("/exchange-loss/demands", test_demands);
    g_test_add_func("/exchange-loss/exports", test_exports);
    g_test_add_func("/exchange-loss/launch", test_launch);
    g_test_add_func("/exchange-loss/torchtitan", test_torchtitan);
    return g_test_run();
}
