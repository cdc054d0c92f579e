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
