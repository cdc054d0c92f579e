/* calibrate/fit/recorded_bench.h - what public benchmarks print, as rows of a table. Internal to calibrate/.
 *
 * Read are, told by what they hold:
 *   cudnn-frontend, attention   CSV with q_seqlen, num_q_heads, attn_mask; a time each way in a row, or a pass a row
 *   PyTorch, sdpa.py            CSV with q_seq_len, forward_time, backward_time
 *   cudnn-frontend, norms       CSV with norm_type, N, C, fwd_time_ms, bwd_time_ms
 *   flash-attention             lines "### causal=True, headdim=128, batch_size=2, seqlen=8192 ###", "Flash2 fwd: 400 TFLOPs/s"
 *   mamf-finder                 "794.5 TFLOPS @ 4096x4096x4096"
 *   nvbandwidth                 "SUM host_to_device_memcpy_ce 440.2" and the matrices before it
 * Rows of a few tens of repeats say "burst": true: the clocks have not come down yet as they do in a step of seconds.
 */
#ifndef ORR_CALIBRATE_RECORDED_BENCH_H
#define ORR_CALIBRATE_RECORDED_BENCH_H

#include "base/json.h"

/* Writes the sections into the object that is open; 1 rows were written, 0 it is none of these, -1 failed. */
int cal_bench_text(const char *text, const char *name, OrrJsonWriter *w, GError **error);

#endif
