/* cli/cmd_calibrate_steps.h - calibrate fit on a measurement file: whole training steps. */
#ifndef ORR_CLI_CMD_CALIBRATE_STEPS_H
#define ORR_CLI_CMD_CALIBRATE_STEPS_H

#include <glib.h>
#include <stdbool.h>

/* Whether the file is a list of measured steps ({"scenario", "measured"}), and no table of kernels. */
bool cli_is_measured_steps(const char *path);

/* Fits factors to the rows of `accelerator` (NULL: the only one there is) and appends the profile; `log` gets a line a
 * factor, and each row that is left out; `residuals` each row beside its predictions (CalResidual; may be NULL). */
bool cli_fit_measured_steps(const char *path, const char *accelerator, char **sets, GArray *residuals,
                            GString *out_json, GString *log, GError **error);

#endif
