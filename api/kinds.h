/* api/kinds.h - "NAME" or "NAME@USD": a kind of GPU on the command line. */
#ifndef ORR_API_KINDS_H
#define ORR_API_KINDS_H

#include "base/error.h"
#include "plan/plan.h"
#include "spec/spec.h"

/* `base` on the cluster of a preset (`key` "cluster"), or on the reference node of an accelerator (`key` "accelerator"), with
 * as many GPUs as it has and the price of a GPU-hour behind the "@". `ret_spec` begins as a copy of `base`; layers and
 * micro-batches that were to be dealt out by kinds of GPUs are even where all are alike. `key` names the flag in errors. */
bool api_kind_read(const char *key, const char *word, const Spec *base, Spec *ret_spec, GError **error);

/* Plans `base` on such a kind. One that cannot be planned on keeps its place with its reason (plan_drop()); fails only where the
 * word names none. */
bool api_kind_plan(const char *key, const char *word, const Spec *base, const PlanOptions *options,
                   Plan *ret_plan, GError **error);

#endif
