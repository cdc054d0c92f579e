/* exchange/import_peft.h - PEFT's adapter_config.json becomes training.task and training.adapter. */
#ifndef ORR_EXCHANGE_IMPORT_PEFT_H
#define ORR_EXCHANGE_IMPORT_PEFT_H

#include "base/json.h"
#include "exchange/loss.h"

/* Whether the JSON object is PEFT's. */
bool exchange_is_peft(const OrrJson *root);
/* A new scenario: `base` (NULL: an empty one) with the adapter. NULL with an error where the kind of adapter is another one. */
OrrJsonDoc *exchange_import_peft(const OrrJson *root, const char *path, const OrrJson *base,
                                 ExchangeLoss *loss, GError **error);

#endif
