/* spec/complete.h - spec_complete() of spec/load.h, with notes of what was derived. */
#ifndef ORR_SPEC_COMPLETE_H
#define ORR_SPEC_COMPLETE_H

#include "base/error.h"
#include "spec/spec.h"

/* `notes` (char*, may be NULL) collects "parallel.data=16". */
bool spec_complete_noted(Spec *spec, const char *where, GPtrArray *notes, GError **error);

/* The model alone; `sequence_length` 0: not known, learned positions stay as they are. */
bool spec_complete_model(SpecModel *model, int sequence_length, double dropout_frac, const char *where,
                         GPtrArray *notes, GError **error);

bool spec_complete_cluster(SpecCluster *cluster, const char *where, GPtrArray *notes, GError **error);

#endif
