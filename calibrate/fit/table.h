/* calibrate/fit/table.h - tables of measured kernels, as rows that the cost model can predict.
 *
 * A table is a JSON object of lists, a row an object with "gpu" (an accelerator's preset name) and "source":
 *   gemm_measurements          m n k dtype, and time_us or tflops; layout TN NN NT, accumulate, out
 *   grouped_gemm_measurements  groups m_per_group n k dtype tflops; stage fwd bwd_grad_act bwd_grad_w; accumulate (true)
 *   attention_measurements     kernel pass batch seq heads kv_heads head_dim v_dim causal dtype, and time_us,
 *                              tflops or tflops_simumax (which counts a causal product in full)
 *   hbm_stream                 tbps
 * Rows that leave out what the model needs are counted and skipped, with the reason. Experts' weight gradients are added
 * to fp32 where a row says nothing; of two such rows of one product the shorter is added to 16 bits.
 */
#ifndef ORR_CALIBRATE_TABLE_H
#define ORR_CALIBRATE_TABLE_H

#include "calibrate/fit/recorded.h"
#include "costmodel/attention.h"
#include "costmodel/gemm.h"

typedef enum { CAL_GEMM, CAL_ATTENTION, CAL_STREAM, CAL_KIND_COUNT } CalKind;

#define CAL_STREAM_BYTES 1073741824.0

typedef struct CalRow {
    CalKind kind;
    char accelerator[SPEC_NAME_SIZE];
    char source[SPEC_NAME_SIZE];
    CostGemm gemm;
    bool before_bf16; /* its GPU has no bf16 peak: fp16 has a block of its own (cal_rows_of()) */
    bool sum_unsaid;  /* an expert's weight gradient that does not say what it is added to: taken for fp32 */
    CostAttention attention;
    double measured_s;
    double bytes_per_s; /* CAL_STREAM; measured_s is then of CAL_STREAM_BYTES */
} CalRow;

/* Rows of every accelerator (CalRow, in file order). What was skipped is said in `log`. */
bool cal_table_read(const char *path, GArray **ret_rows, GString *log, GError **error);
/* Rows that do not name their GPU are of `accelerator` (calibrate/fit/recorded.h); NULL as above. */
bool cal_table_read_as(const char *path, const char *accelerator, GArray **ret_rows, GString *log,
                       GError **error);
/* The same of a document at hand; a table without such rows is no error and gives an empty array. */
GArray *cal_table_rows(const OrrJson *root, GString *log);
/* Fails: `path` has no row (of `accelerator`, may be NULL) to use; `skipped` is what cal_table_rows() said. */
bool cal_table_no_row(const char *path, const char *accelerator, const GString *skipped, GError **error);

#endif
