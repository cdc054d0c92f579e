/* tests/fuzz/door.h - what fuzzers of whole scenarios share: a few scenarios to begin with, what is too large for their
 * patience, and what every refusal is. */
#ifndef ORR_TESTS_FUZZ_DOOR_H
#define ORR_TESTS_FUZZ_DOOR_H

#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"

enum { FUZZ_MOST_PASSES = 20000 };

static const char *const fuzz_scenarios[] = {
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"training\":{\"sequence_"
    "length\":8192,"
    "\"global_batch\":32},\"parallel\":{\"tensor\":4,\"pipeline\":2},\"execution\":{\"framework\":\"megatron-"
    "core\"}}",
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"accelerator\":\"b200-sxm-180gb\",\"gpus_per_node\":8,"
    "\"nodes\":4,"
    "\"scale_out_bytes_per_s_per_gpu\":\"50 "
    "GB/s\"},\"training\":{\"sequence_length\":4096,\"global_batch\":64},"
    "\"parallel\":{\"expert\":8},\"execution\":{\"framework\":\"megatron-core\"}}",
    "{\"model\":\"llama2-7b\",\"cluster\":{\"accelerator\":\"a100-sxm4-80gb\",\"gpus_per_node\":8,\"nodes\":"
    "2,"
    "\"scale_out_bytes_per_s_per_gpu\":\"25 "
    "GB/s\"},\"training\":{\"sequence_length\":4096,\"global_batch\":64},"
    "\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"deepspeed\"}}",
    "{\"model\":\"gpt2-xl\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":8,\"nodes\":1},"
    "\"training\":"
    "{\"sequence_length\":1024,\"global_batch\":16,\"recompute\":\"auto\",\"precision\":\"fp16\",\"micro_"
    "batch\":\"auto\"},"
    "\"parallel\":"
    "{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"zero\":\"auto\"},\"execution\":{\"framework\":\"megatron-"
    "lm\"}}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},\"training\":{\"sequence_"
    "length\":8192,"
    "\"global_batch\":128,\"tokens\":1e12},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":"
    "\"torchtitan\"},"
    "\"faults\":\"llama3-2024\",\"storage\":\"tectonic\"}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4,\"network\":{\"fidelity\":"
    "\"flow\","
    "\"topology\":\"leaf-spine\",\"leaf_gpus\":16,\"failed_links\":[\"gpu0-leaf0=0.5\"]}},\"training\":{"
    "\"sequence_"
    "length\":8192,\"global_batch\":16},\"parallel\":{\"tensor\":8,\"pipeline\":2,\"zero\":1},\"execution\":{"
    "\"framework\":\"megatron-core\"},\"jitter\":\"slow-machines\"}",
    "{\"model\":\"blenderbot-400m\",\"cluster\":{\"preset\":\"dgx-2\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":"
    "128,\"encoder_sequence_length\":128,\"global_batch\":64,\"precision\":\"fp16\"},\"parallel\":{\"zero\":"
    "2},"
    "\"execution\":{\"framework\":\"transformers-deepspeed\"},\"offload\":{\"scheme\":\"zero-offload\"}}",
    "{\"model\":\"resnet-50\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":1,\"nodes\":"
    "4,"
    "\"scale_out_bytes_per_s_per_gpu\":\"12.5 "
    "GB/s\"},\"training\":{\"sequence_length\":1,\"global_batch\":128,"
    "\"micro_batch\":32,\"precision\":\"fp16\"},\"parallel\":{\"data_scheme\":\"parameter_server\","
    "\"parameter_server\":{\"servers\":2,\"scheme\":\"bytescheduler\"}},\"execution\":{\"framework\":\"mxnet-"
    "horovod\"}}",
    "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"aws-p5\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":4096,"
    "\"global_batch\":8},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"deepspeed\"},\"offload\":{"
    "\"scheme\":\"zero-infinity\"}}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":"
    "\"dgx-a100-80gb\",\"nodes\":1}]},\"training\":{\"sequence_length\":8192,\"global_batch\":32},"
    "\"parallel\":{"
    "\"tensor\":4,\"pipeline\":2,\"zero\":1,\"stage_layers\":\"auto\",\"replica_microbatches\":\"auto\"},"
    "\"execution\":{\"framework\":\"megatron-core\"}}",
};

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

static inline void check_error(GError *error)
{
    require(error != NULL && error->domain == ORR_ERROR && error->code != ORR_ERROR_INTERNAL);
    require(strchr(error->message, '\n') == NULL && g_utf8_validate(error->message, -1, NULL));
    g_error_free(error);
}

static inline bool fuzz_is_small(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    return (double)spec_microbatches(spec) * parallel->pipeline * MAX(1, parallel->virtual_stages) <=
               FUZZ_MOST_PASSES &&
           spec->model.layers <= 200 && spec_gpus(spec) <= 100000;
}

#endif
