/* exchange/detect.h - which program's file a text is, and what only its words tell: the trainer that a launch starts. */
#ifndef ORR_EXCHANGE_DETECT_H
#define ORR_EXCHANGE_DETECT_H

#include "exchange/exchange.h"
#include "exchange/settings.h"

/* An ExchangeFormat, or -1: none that is known. */
int exchange_detect(const char *text, size_t length);
/* Files of fine-tuning programs that are told apart and not read: true, with the error set. */
bool exchange_is_another(const char *text, size_t length, const char *path, GError **error);
/* Evaluations, generations, quantizations and predictions, and loops that generate: true, with the error set. */
bool exchange_trains_nothing(const char *text, size_t length, const char *path, GError **error);
/* What the trainer of a TRL launch does by itself: its loss says whether pairs or verdicts are trained on. */
void exchange_settle_trl(const char *text, size_t length, Settings *settings);
/* single_device: the comment at the head of a recipe's file starts a recipe of one GPU. `text` ends in '\0'. */
void exchange_settle_torchtune(const char *text, Settings *settings);

#endif
