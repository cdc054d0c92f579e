/* costmodel/textbook.c - see textbook.h. */
#include "costmodel/textbook.h"

double cost_textbook_gpus(double parameters, double tokens, double flops_per_s_per_gpu, double seconds)
{
    return 6 * parameters * tokens / (flops_per_s_per_gpu * seconds);
}

double cost_textbook_seconds(double parameters, double tokens, int gpus, double flops_per_s_per_gpu)
{
    return 8 * parameters * tokens / (gpus * flops_per_s_per_gpu);
}

CostNotesMemory cost_textbook_gpt2_memory(double parameters, int layers, int hidden, double batch,
                                          double sequence)
{
    const double bytes = 4, row = batch * sequence * hidden * bytes;
    CostNotesMemory memory = {
        .states_bytes = (4 + 4 + 12) * parameters,
        .layer_bytes = 6 * row,
        .token_embedding_bytes = row,
        .position_embedding_bytes = sequence * hidden * bytes,
    };
    memory.activations_bytes =
        layers * memory.layer_bytes + memory.token_embedding_bytes + memory.position_embedding_bytes;
    return memory;
}
