/* calibrate/fit/splice.h - replacing one member of a JSON text and leaving every other byte as it is. */
#ifndef ORR_CALIBRATE_SPLICE_H
#define ORR_CALIBRATE_SPLICE_H

/* The text with root.outer.inner set to `value` (JSON text, indented for depth 2); either is added at the end
 * of its object when absent. `json` is a valid document whose root is an object; g_free. */
char *cal_splice(const char *json, const char *outer, const char *inner, const char *value);

#endif
