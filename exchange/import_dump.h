/* exchange/import_dump.h - configurations that NVIDIA's recipes write of themselves as YAML: Megatron-Bridge's
 * ConfigContainer.to_yaml() and NeMo 2's recipes through NeMo-Run. Each object has its class in "_target_". */
#ifndef ORR_EXCHANGE_IMPORT_DUMP_H
#define ORR_EXCHANGE_IMPORT_DUMP_H

#include "base/error.h"
#include "exchange/settings.h"

/* Whether the text is such a file, and then YAML with names of Megatron-Bridge's overrides once it is settled. */
bool exchange_is_dump(const char *text, size_t length);
/* Settings of such a file under the names of Megatron-Bridge's overrides (exchange/megatron.h). Adds "orrery.preset", a
 * preset's name, where a model is given by its class alone. */
void exchange_dump_settle(Settings *settings);

/* Whether the text is a recipe in Python, which only its own software can run. */
bool exchange_is_python(const char *text, const char *path);
/* Refuses one, and says how to write it as YAML. */
void exchange_refuse_python(const char *path, const char *text, size_t length, GError **error);

#endif
