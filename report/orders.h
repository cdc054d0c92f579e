/* report/orders.h - a schedule as the file of op orders that `parallel.schedule` reads. */
#ifndef ORR_REPORT_ORDERS_H
#define ORR_REPORT_ORDERS_H

#include "spec/spec.h"

#include "base/error.h"

/* Appends the orders that the complete `spec` would run, in the words of spec/orders.h: JSON with one line a rank, or
 * the CSV of PyTorch's compute-only schedules. Replayed, they give the same step. */
bool report_write_orders(const Spec *spec, bool csv, GString *out, GError **error);

#endif
