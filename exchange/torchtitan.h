/* exchange/torchtitan.h - words of torchtitan's job configuration (torchtitan/config/job_config.py). */
#ifndef ORR_EXCHANGE_TORCHTITAN_H
#define ORR_EXCHANGE_TORCHTITAN_H

#include "exchange/export.h"
#include "exchange/import.h"

/* Models that torchtitan 0.2 has of its own (torchtitan/models) and that are presets here. */
#define TORCHTITAN_MODELS 10
typedef struct TorchtitanModel {
    const char *preset, *name, *flavor;
} TorchtitanModel;
extern const TorchtitanModel torchtitan_models[TORCHTITAN_MODELS];

/* A schedule of a scenario and torchtitan's word for it. */
typedef struct TorchtitanSchedule {
    const char *schedule, *word;
} TorchtitanSchedule;
extern const TorchtitanSchedule torchtitan_schedules[6];

/* Model stages that torchtitan makes of `layers` (with what embedding and head count for) at `per_stage` each. */
static inline int torchtitan_stages(int layers, int per_stage)
{
    return (layers + per_stage - 1) / per_stage;
}

#endif
