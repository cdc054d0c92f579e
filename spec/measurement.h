/* spec/measurement.h - one published run: what was measured, beside the scenario it belongs to. */
#ifndef ORR_SPEC_MEASUREMENT_H
#define ORR_SPEC_MEASUREMENT_H

#include "base/json.h"
#include "spec/spec.h"

typedef enum { SPEC_MEMORY_ALLOCATED, SPEC_MEMORY_RESERVED, SPEC_MEMORY_DEVICE } SpecMemoryKind;

typedef struct SpecMeasured { /* 0: not published */
    double step_s;
    bool step_published; /* false: step_s was computed from another published figure */
    double tokens_per_s_per_gpu, flops_per_s_per_gpu, mfu;
    double peak_memory_bytes, peak_reserved_bytes;
    SpecMemoryKind memory_kind;     /* of peak_memory_bytes */
    double memory_uncertainty_frac; /* GB or GiB unclear */
    bool memory_assumed;            /* what decides the peak is not published */
} SpecMeasured;

typedef struct SpecMeasurement {
    char id[SPEC_NAME_SIZE * 2];
    char date[32]; /* "2024-12" */
    bool partial;  /* something that matters had to be assumed */
    SpecMeasured measured;
    const OrrJson *scenario; /* borrowed from the row's document */
} SpecMeasurement;

extern const SpecWords spec_words_memory_kind;

/* One row of a measurement file. */
bool spec_read_measurement(const OrrJson *row, const char *where, SpecMeasurement *ret_measurement,
                           GError **error);

#endif
