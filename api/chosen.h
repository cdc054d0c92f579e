/* api/chosen.h - what "auto" became. */
#ifndef ORR_API_CHOSEN_H
#define ORR_API_CHOSEN_H

#include "base/error.h"
#include "base/stop.h"
#include "spec/spec.h"

/* Chooses every "auto" of `asked` into `ret_spec` (a copy when there is none) and adds "key=value" for each to
 * `chosen` (char*, owned). Fails when a field cannot be chosen, or no choice is valid, or `stop` (may be NULL) ended it. */
bool api_choose_reserved(const Spec *asked, double reserve_bytes, const OrrStop *stop, Spec *ret_spec,
                         GPtrArray *chosen, GError **error);
/* The same with the ledger's memory reserve kept free. */
bool api_choose(const Spec *asked, Spec *ret_spec, GPtrArray *chosen, GError **error);

#endif
