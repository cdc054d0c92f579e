/* calibrate/fit/step_knobs.h - the few physical factors that measured training steps can tell: what each turns in a Spec. */
#ifndef ORR_CALIBRATE_STEP_KNOBS_H
#define ORR_CALIBRATE_STEP_KNOBS_H

#include <glib.h>

#include "spec/spec.h"

typedef enum {
    CAL_KNOB_COMPUTE,   /* sustained clock: rates of products and attention, and a tile's fixed times */
    CAL_KNOB_MEMORY,    /* memory-bound kernels, and products that stream their operands */
    CAL_KNOB_HOST,      /* the host's speed under one framework: launches and per-step work */
    CAL_KNOB_SCALE_UP,  /* bus rates inside a scale-up domain */
    CAL_KNOB_SCALE_OUT, /* NIC rates */
    CAL_KNOB_LATENCY,   /* start and steps of collectives, inside and across */
    CAL_KNOB_KIND_COUNT
} CalKnobKind;

#define CAL_MAX_KNOBS 12

typedef struct CalKnob {
    CalKnobKind kind;
    char framework[SPEC_NAME_SIZE]; /* CAL_KNOB_HOST: whose */
} CalKnob;

/* "compute", "host of megatron-core". */
void cal_knob_name(const CalKnob *knob, char *text, gsize size);

/* Rates times `factor`, times over it: above 1 is faster for every knob. Blocks that are absent become the defaults
 * that the cost model would have taken, results stay in the field tables' ranges. */
void cal_knob_turn(const CalKnob *knob, double factor, Spec *spec);

/* The collectives that count for a cluster: its own halves before its accelerator's. */
SpecCollectiveModel cal_effective_collectives(const SpecCluster *cluster);

#endif
