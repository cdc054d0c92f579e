/* exchange/loss.h - what a file could not carry over, in two parts: what changes the prediction, what does not. */
#ifndef ORR_EXCHANGE_LOSS_H
#define ORR_EXCHANGE_LOSS_H

#include <glib.h>
#include <stdbool.h>

typedef struct ExchangeLoss {
    GPtrArray *changes;      /* char*: clauses of what changes the prediction, or may */
    GPtrArray *harmless;     /* char*: names, or clauses, of what does not */
    GPtrArray *defaults;     /* char*: clauses of what the file leaves to its framework's defaults */
    GPtrArray *placeholders; /* char*: exported settings that hold a value nobody gave */
} ExchangeLoss;

void exchange_loss_init(ExchangeLoss *loss);
void exchange_loss_clear(ExchangeLoss *loss);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExchangeLoss, exchange_loss_clear)

/* A clause on one line: control characters replaced, cut where it is longer than a sentence. */
void exchange_loss_change(ExchangeLoss *loss, const char *text);
void exchange_loss_harmless(ExchangeLoss *loss, const char *text);
void exchange_loss_default(ExchangeLoss *loss, const char *text);

/* The report: both parts, "nothing" where one is empty, defaults and placeholders where there are any; each line ends. */
void exchange_loss_write(const ExchangeLoss *loss, GString *out);

/* Whether a setting of a framework that no scenario has a field for leaves a step as it is: logging, files, learning
 * rates, seeds, data. `key`: "log-interval", "metrics.log_freq", "optimizer.params.lr". */
bool exchange_changes_no_step(const char *key);

#endif
