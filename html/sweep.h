/* html/sweep.h - one page that shows what a calibration got: roofline, products, memory, buses, and what the fit says. */
#ifndef ORR_HTML_SWEEP_H
#define ORR_HTML_SWEEP_H

#include "html/html.h"

/* A product or an attention kernel. `group` is shared by rows of one colour; m and width of a forward bf16 product, else 0. */
typedef struct HtmlSweepKernel {
    const char *group;
    char what[96];
    double flops, bytes, seconds, peak_flops_per_s;
    double m, width; /* rows, and the square root of the weights */
} HtmlSweepKernel;

typedef struct HtmlSweepMove {
    const char *kernel;
    double bytes, seconds;
} HtmlSweepMove;

typedef struct HtmlSweepBus {
    const char *op;
    int ranks;
    double bytes, bus_bytes_per_s;
} HtmlSweepBus;

typedef struct HtmlSweep {
    const char *device, *command;
    double memory_bytes_per_s; /* the data sheet's; 0: not known */
    const GArray *kernels;     /* HtmlSweepKernel */
    const GArray *moves;       /* HtmlSweepMove */
    const GArray *buses;       /* HtmlSweepBus */
    const GArray *facts;       /* HtmlFact, of the stamp */
    const char *log;           /* what the fit said, a line each */
} HtmlSweep;

/* Appends the whole document; figures without rows are left out. */
void html_sweep_write(const HtmlSweep *sweep, GString *out);

#endif
