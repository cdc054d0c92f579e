/* cli/plot_fabric.h - what the files that draw fabrics share. Internal to cli/. */
#ifndef ORR_CLI_PLOT_FABRIC_H
#define ORR_CLI_PLOT_FABRIC_H

#include "cli/collective.h"
#include "plots/plots.h"

typedef struct Layout {
    const NetTopology *t;
    bool grid;      /* its generator makes grids */
    double *xy;     /* [2 x vertices], to be filled */
    GArray *pieces; /* PlotPiece */
    bool square;    /* both axes have one scale */
} Layout;

void cli_layout(Layout *layout);

/* The fabric of --ranks GPUs of --cluster, --topology, --rate ... */
bool cli_plot_topology(const CollectiveArgs *args, const PlotTarget *target, GError **error);
/* Bus bandwidth of --op over sizes --bytes, on 1, 2, 4 ... nodes up to --ranks GPUs of --cluster. */
bool cli_plot_busbw(const CollectiveArgs *args, const PlotTarget *target, GError **error);

#endif
