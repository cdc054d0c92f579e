/* cli/glossary.c - see glossary.h. Tested: cli/test_cli_habits.c */
#include "cli/glossary.h"

#include <string.h>

#include "cli/help.h"
#include "report/page.h"

/* `also`: other words for it, apart by spaces where they are one word each. `key`: the field that sets it, or "". */
static const struct {
    const char *word, *also, *text, *key;
} terms[] = {
    {"1F1B", "one forward one backward",
     "Pipeline schedule: after filling, every rank alternates one forward and one backward, so that at most "
     "as many micro-batches are alive as there are stages.",
     "parallel.schedule"},
    {"activation", "activations",
     "Tensors that a forward pass makes and its backward needs; kept, recomputed or offloaded in between.",
     "training.recompute"},
    {"all-gather", "allgather",
     "Collective after which every rank holds the parts of all ranks, one after the other.", ""},
    {"all-reduce", "allreduce",
     "Collective after which every rank holds the sum over all ranks; a reduce-scatter and an all-gather.",
     ""},
    {"all-to-all", "alltoall",
     "Collective in which every rank sends a part of its own to each other rank; carries tokens to experts "
     "and heads to Ulysses ranks.",
     "parallel.moe_dispatcher"},
    {"attention core", "",
     "Scores, softmax and weighted values of attention, without the projections around them; a fused kernel "
     "(FlashAttention, cuDNN) never writes the scores to memory.",
     "execution.attention"},
    {"bf16", "bfloat16", "16-bit floating point with the exponent range of fp32.", "training.precision"},
    {"automatic parallelism", "autotuning deepspeed-autotuning mesh-tensorflow oneflow alpa accelerate",
     "Degrees that a program finds by itself. Here it is 'orrery search', over fields that are \"auto\". "
     "DeepSpeed's autotuning tries ZeRO stages and micro-batches: parallel.zero and training.micro_batch. "
     "Meshes of Mesh-TensorFlow and OneFlow are tensor and data degrees; Accelerate launches DDP "
     "(framework accelerate), FSDP or DeepSpeed.",
     "parallel.tensor"},
    {"bubble", "pipeline bubble",
     "Time in which a pipeline rank neither computes nor communicates because its input is not there yet.",
     "parallel.schedule"},
    {"bucket", "", "Gradients or weights that are reduced or gathered as one message.", ""},
    {"busbw", "bus bandwidth",
     "Bytes that cross a rank's links in a collective over its time: comparable between numbers of ranks, "
     "unlike algbw, which counts the payload.",
     ""},
    {"campaign", "", "A whole training run: all its steps, with whatever interrupts them.",
     "training.tokens"},
    {"capacity factor", "",
     "Rows that an expert takes over the mean; tokens beyond are dropped. Dropless models have none.",
     "model.moe.capacity_factor"},
    {"checkpoint", "",
     "Weights and optimizer states written to storage, from which a run restarts. Activation checkpointing "
     "is another thing: see recomputation.",
     ""},
    {"cluster scheduler", "gavel gandiva gandiva-fair lucid fgd pollux sia",
     "Who decides which job runs where. 'orrery jobs' runs a trace under the rules of Gavel, Lucid, Pollux, "
     "Sia, Gandiva_fair and FGD, by these names. Gandiva packs jobs (packing). Batches that change (Pollux) "
     "are "
     "not simulated.",
     ""},
    {"citation", "cite citing bibtex",
     "How to name Orrery in a paper: the file CITATION.cff has title and version. Give the stamp of your "
     "runs too; it names the version and the hash of the scenario.",
     ""},
    {"collective", "",
     "Communication that all ranks of a group take part in: all-reduce, all-gather, reduce-scatter, "
     "all-to-all, broadcast.",
     ""},
    {"compiler", "tvm triton torchdynamo dynamo inductor torch.compile xla",
     "Kernels written for the model at hand: chains of elementwise work become one kernel, so that bytes are "
     "moved once. Products stay those of libraries. TorchDynamo with Triton is what frameworks of PyTorch "
     "mean "
     "by it; TVM is not modelled separately.",
     "execution.compiled"},
    {"context parallelism", "cp sequence context",
     "Each rank holds a part of every sequence; attention exchanges keys and values in a ring, or heads in "
     "an all-to-all.",
     "parallel.context"},
    {"critical rank", "", "The rank that finishes last; a report splits its step into parts.", ""},
    {"data parallelism", "dp",
     "Ranks with the same weights and different sequences, which sum their gradients.", "parallel.data"},
    {"DDP", "distributed data parallel", "Data parallelism with every state on every rank (ZeRO-0).",
     "parallel.zero"},
    {"DualPipe", "",
     "Schedule with two copies of the model that enter the pipeline from both ends. Forwards and "
     "backwards of different micro-batches run as pairs and hide each other's messages.",
     "parallel.schedule"},
    {"ECMP", "",
     "Choice of one of several equal paths by a hash of the flow; two flows may meet on one link.", ""},
    {"energy", "power kwh mw watt watts electricity",
     "Reports give kWh: GPUs at their board's power, less where they wait, with hosts and "
     "cooling. A site of so many MW holds its watts over those of a GPU with its host, times PUE; "
     "'orrery plan --gpus N' asks about that many. A lower limit of the board is "
     "cluster.accelerator.power_cap_w.",
     "cluster.accelerator.power_w"},
    {"expert parallelism", "ep",
     "Each rank holds some experts of every mixture-of-experts layer; tokens travel to them.",
     "parallel.expert"},
    {"fine-tuning", "finetune finetuning sft lora qlora peft rlhf dpo grpo kto orpo nf4 reward axolotl trl",
     "Training goes on from weights that exist: all of them (task sft), or low-rank adapters next to "
     "frozen ones (lora). Where the frozen ones are quantised it is qlora. Preferences are tasks dpo, "
     "orpo, kto and reward. Reinforcement learning is a workload: orrery help workload.",
     "training.task"},
    {"adapter", "lora-adapter",
     "Two thin matrices added to a frozen linear layer, A of rank r by its inputs and B of its outputs by r. "
     "They alone "
     "have gradients and optimizer state.",
     "training.adapter"},
    {"inference", "serving decoding generation prefill kv-cache rollout",
     "Answers from a trained model. Not simulated: Orrery is about training steps. What a run evaluates "
     "between "
     "them is.",
     "data.eval_every_steps"},
    {"FlashAttention", "flash2 flash3", "Attention in one kernel that keeps scores on the chip.",
     "execution.attention"},
    {"fp8", "mxfp8 nvfp4",
     "8- and 4-bit floating point for matrix products, with scales for a tensor, a row or a block; weights "
     "and sums stay wider.",
     "training.precision"},
    {"int8", "int4",
     "8- and 4-bit integers for matrix products, with a scale for each row of an operand; weights and sums "
     "stay wider.",
     "training.precision"},
    {"fragmentation", "",
     "Memory that the caching allocator holds and cannot give out because its free pieces are too small.",
     ""},
    {"FSDP", "fully sharded data parallel",
     "ZeRO-3 by another name: weights, gradients and optimizer states are split over the data-parallel ranks "
     "and gathered layer by layer.",
     "parallel.zero"},
    {"GEMM", "matrix product", "General matrix multiplication: where nearly all FLOPs of a transformer are.",
     ""},
    {"global batch", "batch", "Sequences of one step, over all replicas and micro-batches.",
     "training.global_batch"},
    {"GQA", "grouped-query attention kv heads", "Several query heads share a key and value head.",
     "model.kv_heads"},
    {"gradient accumulation", "",
     "Several micro-batches between two optimizer steps; their gradients are summed.",
     "training.micro_batch"},
    {"HBM", "memory bandwidth", "The GPU's memory, and its bandwidth: what byte-moving kernels wait for.",
     "accelerator.memory_bytes_per_s"},
    {"HFU", "hardware FLOPs utilisation", "As MFU, with recomputed FLOPs counted.", ""},
    {"host-bound", "launch bound",
     "The GPU waits for the host to launch kernels: many small kernels, little work in each.", ""},
    {"interleaved", "virtual pipeline vpp",
     "Schedule in which each rank holds several chunks of the model; the bubble shrinks, messages multiply.",
     "parallel.virtual_stages"},
    {"latent attention", "MLA",
     "Keys and values are kept as one small vector a token and expanded by products when needed (DeepSeek).",
     "model.mla"},
    {"master weights", "", "fp32 copy of the weights that the optimizer updates.", "training.states"},
    {"MFU", "model FLOPs utilisation",
     "FLOPs that the model needs for a step, over what the GPUs could do at their dense peak in that time. "
     "Sources count differently: with or without the causal mask, the head, the embedding.",
     ""},
    {"micro-batch", "microbatch", "Sequences that pass through a rank at once.", "training.micro_batch"},
    {"mixture of experts", "MoE",
     "A layer with many MLPs of which a router picks a few for each token: parameters grow, FLOPs do not.",
     "model.moe"},
    {"NCCL", "RCCL",
     "The library that runs collectives; it chooses an algorithm (ring, tree, NVLS) and a protocol by size.",
     ""},
    {"NIC", "scale-out", "A GPU's link to the network between nodes.",
     "cluster.scale_out_bytes_per_s_per_gpu"},
    {"NVLink", "scale-up", "Links between the GPUs of a node or a rack, much faster than the network.",
     "cluster.scale_up_bytes_per_s"},
    {"offloading", "offload",
     "States or activations wait in the host's memory (or on NVMe) until they are needed.", "offload"},
    {"optimizer states", "",
     "What the optimizer keeps a parameter: Adam two moments and, in mixed precision, the master weight.",
     "training.optimizer"},
    {"overlap", "",
     "Communication that runs at the same time as compute. What compute does not hide is exposed and adds to "
     "the step.",
     "execution.overlap"},
    {"oversubscription", "", "Uplinks of a network with less bandwidth than what hangs below them.",
     "cluster.oversubscription"},
    {"parameter", "parameters weights",
     "A trained number of the model. Active parameters: those that a token meets, in a mixture of experts.",
     ""},
    {"Pareto front", "front", "Configurations that no other beats in everything: here time, memory and cost.",
     ""},
    {"pipeline parallelism", "pp stage",
     "Each rank holds a run of layers; micro-batches pass through them one after the other.",
     "parallel.pipeline"},
    {"PUE", "", "Power of a data centre over that of its computers.", "cluster.pue"},
    {"rail", "", "Network in which the n-th GPUs of all nodes share a switch.", ""},
    {"rank", "", "One process, on one GPU.", ""},
    {"recomputation", "activation checkpointing recompute",
     "The forward runs again before the backward, so that activations need not be kept: selective (attention "
     "core), full, or by module.",
     "training.recompute"},
    {"reduce-scatter", "", "Collective after which every rank holds its part of the sum.", ""},
    {"replica", "", "The ranks that hold one copy of the model.", "parallel.data"},
    {"reserve", "memory reserve",
     "Memory kept free for what predictions miss: what the tensors of 98 % of published runs needed beyond "
     "theirs.",
     "search.reserve_memory_bytes"},
    {"ring attention", "",
     "Context parallelism in which keys and values go round the ranks while each computes on what it has.",
     "parallel.context_mode"},
    {"sequence parallelism", "sp",
     "Tensor-parallel ranks split norms and dropouts along the sequence; all-reduces become all-gathers and "
     "reduce-scatters.",
     "parallel.sequence_parallel"},
    {"SM", "streaming multiprocessor compute unit",
     "A GPU's unit of work; collectives may take some away from compute.", "accelerator.sm_count"},
    {"spot instance", "spot preemptible preemption",
     "A node that its owner may take back: a failure of a node in a campaign. Give faults.spot_mtbf_s, what "
     "a restart takes (faults.detection_s, reschedule_s, init_s), faults.spares or elastic, and the price in "
     "cluster.usd_per_gpu_hour.",
     "faults.spot_mtbf_s"},
    {"straggler", "", "A slow rank, for which all others wait.", "accelerator.speed_spread_frac"},
    {"tensor parallelism", "tp",
     "Each matrix is split over ranks, which exchange activations twice a layer and pass.",
     "parallel.tensor"},
    {"textbook estimate", "6ND", "6 FLOPs a parameter and token over the peak times an assumed utilisation.",
     ""},
    {"textbook step", "textbook",
     "'orrery run FILE --textbook' is the step of textbooks: stages all alike and nothing but their passes, "
     "so that bubbles are those of the formulas. Another thing is the textbook estimate of days.",
     "parallel.schedule"},
    {"throughput", "tokens per second", "Tokens a second, of the cluster or of a GPU.", ""},
    {"token", "tokens", "What a model reads and predicts: a piece of a word.", "training.tokens"},
    {"trace", "tracing profile timeline perfetto chrome-trace",
     "What every rank does at each instant of a step: 'orrery run FILE --trace trace.json.gz' writes it, "
     "and ui.perfetto.dev opens it. 'orrery run FILE --timeline' draws it in the terminal.",
     ""},
    {"Ulysses", "",
     "Context parallelism by all-to-alls: ranks hold whole sequences of some heads during attention.",
     "parallel.context_mode"},
    {"waterfall", "", "Picture of how the dense peak becomes the MFU, loss by loss.", ""},
    {"ZeRO", "zero redundancy optimizer",
     "Data-parallel ranks share states: 1 the optimizer's, 2 and gradients, 3 and weights.", "parallel.zero"},
    {"zero bubble", "zb-h1 zb-h2 zb-v",
     "Schedules that split a backward into the input's and the weights' gradients, and fill bubbles with the "
     "second.",
     "parallel.schedule"},
};

/* Letters and digits, lower case. */
static char *folded(const char *word)
{
    GString *out = g_string_new(NULL);
    for (const char *c = word; *c != '\0'; c++)
        if (g_ascii_isalnum(*c))
            g_string_append_c(out, g_ascii_tolower(*c));
    return g_string_free(out, FALSE);
}

static bool is_called(const char *also, const char *asked)
{
    g_autofree char *whole = folded(also);
    if (whole[0] != '\0' && strcmp(whole, asked) == 0)
        return true;
    g_auto(GStrv) words = g_strsplit(also, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        g_autofree char *one = folded(*word);
        if (one[0] != '\0' && strcmp(one, asked) == 0)
            return true;
    }
    return false;
}

static void append_term(gsize index, GString *out)
{
    g_string_append_printf(out, "%s\n", terms[index].word);
    report_page_entry_within(out, "", 4, terms[index].text, cli_help_width());
    if (terms[index].key[0] != '\0') {
        g_autofree char *see =
            g_strdup_printf("Set by %s (orrery help %s).", terms[index].key, terms[index].key);
        report_page_entry_within(out, "", 4, see, cli_help_width());
    }
}

bool cli_glossary_help(const char *word, GString *out)
{
    g_autofree char *asked = folded(word);
    bool found = false;
    for (gsize i = 0; i < G_N_ELEMENTS(terms); i++) {
        g_autofree char *own = folded(terms[i].word);
        if (asked[0] != '\0' && strcmp(own, asked) == 0) {
            append_term(i, out);
            return true;
        }
    }
    for (gsize i = 0; i < G_N_ELEMENTS(terms); i++) {
        if (asked[0] == '\0' || !is_called(terms[i].also, asked))
            continue;
        append_term(i, out);
        found = true;
    }
    return found;
}

const char **cli_glossary_words(void)
{
    const char **words = g_new0(const char *, G_N_ELEMENTS(terms) + 1);
    for (gsize i = 0; i < G_N_ELEMENTS(terms); i++)
        words[i] = terms[i].word;
    return words;
}

void cli_glossary_markdown(GString *out)
{
    g_string_append(out,
                    "# Glossary\n\n"
                    "The words of the field as Orrery uses them; `orrery help WORD` prints each. Written by "
                    "`orrery help --glossary`.\n\n");
    for (gsize i = 0; i < G_N_ELEMENTS(terms); i++) {
        g_string_append_printf(out, "**%s**", terms[i].word);
        g_autoptr(GString) text = g_string_new(NULL);
        g_string_append_printf(text, "%s%s%s%s", terms[i].text, terms[i].key[0] != '\0' ? " Set by `" : "",
                               terms[i].key, terms[i].key[0] != '\0' ? "`." : "");
        g_auto(GStrv) words = g_strsplit(text->str, " ", -1);
        int column = (int)strlen(terms[i].word) + 5;
        g_string_append(out, " -");
        for (char **word = words; *word != NULL; word++) {
            const int width = (int)strlen(*word);
            const bool wraps = column + 1 + width > 118;
            g_string_append_printf(out, "%c%s", wraps ? '\n' : ' ', *word);
            column = wraps ? width : column + 1 + width;
        }
        g_string_append(out, "\n\n");
    }
    g_string_truncate(out, out->len - 1);
}
