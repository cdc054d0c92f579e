/* exchange/formats.h - the table of formats that hold a training configuration: what writes and reads each. */
#ifndef ORR_EXCHANGE_FORMATS_H
#define ORR_EXCHANGE_FORMATS_H

#include "exchange/import.h"

typedef struct ExchangeFormatRow {
    SettingsSyntax syntax;
    bool (*export)(const Spec *spec, Settings *out, GError **error);
    bool (*export_loop)(const Spec *spec, const OrrJson *scenario, Settings *out, GError **error);
    void (*import)(ExchangeImport *import);
    const char *title;
    const char *array;         /* of shell words */
    const char *frameworks[6]; /* profiles of that software begin so; NULL behind them */
    bool adapters;             /* it says training.adapter */
    bool freezes;              /* its own checks answer for training.freeze */
    bool adapter_only; /* and nothing else; its reader takes no key but its own, so it holds no scenario */
} ExchangeFormatRow;

/* NULL: a format that holds a model alone. */
const ExchangeFormatRow *exchange_format_row(ExchangeFormat format);

/* Reads settings into a copy of `start`, as an import of that format does; `native` may be NULL. */
OrrJsonDoc *exchange_read_back(const Settings *settings, ExchangeFormat format, const OrrJson *start,
                               GPtrArray *native);

/* What a reading back of the exported settings does not give: exchange/export_loss.c. */
void exchange_export_loss(const Spec *spec, const OrrJson *scenario, ExchangeFormat format,
                          const Settings *settings, const GPtrArray *native, ExchangeLoss *loss);
/* The settings that a format writes for `spec`; `out` is initialised. */
bool exchange_export_settings(const Spec *spec, ExchangeFormat format, Settings *out, GError **error);

#endif
