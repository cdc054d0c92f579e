/* costmodel/exchange_beside.h - what exchanges of experts that hide beside compute take from it (execution.overlap "expert").
 *
 * They hold SMs, which products, attention and norms then lack, and move their bytes through the memory, which all kernels
 * that are bound by it then share. docs/MODEL-parallel.md.
 */
#ifndef ORR_COSTMODEL_EXCHANGE_BESIDE_H
#define ORR_COSTMODEL_EXCHANGE_BESIDE_H

#include "costmodel/pass.h"

typedef struct CostExchangeShare {
    double sms;         /* that the kernels of exchanges hold while they run; 0: nothing hides */
    double memory_frac; /* of the memory's bytes a second */
} CostExchangeShare;

bool cost_hides_exchanges(const CostShape *shape);
/* How many times as long as alone a collective takes where it hides beside compute. */
double cost_exchange_pace(const CostShape *shape, const CostOp *op);
/* Of the exchanges of a list; `selected` NULL: all ops run. */
CostExchangeShare cost_exchange_share(const CostShape *shape, const CostOps *ops, const bool *selected);
/* What an op that is no collective lasts longer beside such an exchange. */
double cost_exchange_loss_s(const CostShape *shape, const CostOp *op, const CostExchangeShare *share);
/* Takes what hides out of the exchanges' time and adds to the compute time what it loses meanwhile. */
void cost_hide_exchanges(const CostShape *shape, const CostOps *ops, const bool *selected, CostTime *time);

#endif
