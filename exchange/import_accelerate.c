/* exchange/import_accelerate.c - the sharding of a launch by Accelerate, in the file that --config_file names or by its name.
 *
 * Source: Accelerate commands/launch.py, utils/dataclasses.py. Tested: unit/exchange/test_import_trainer.c
 */
#include <stdlib.h>
#include <string.h>

#include "exchange/import_trainer.h"

static const char *said(const Settings *settings, const char *key)
{
    const Setting *setting = settings_find(settings, key);
    const char *value = setting != NULL ? setting->value : NULL;
    return value != NULL && strcmp(value, "null") != 0 ? value : NULL;
}

static bool is_word(const Settings *settings, const char *key, const char *word)
{
    const char *value = said(settings, key);
    return value != NULL && g_ascii_strcasecmp(value, word) == 0;
}

/* The file as given, from the folder of the script, or from one of those above it. Only of a script that is a file itself:
 * a text that came from elsewhere opens nothing. g_free; NULL: not there. */
static char *contents_of(const char *script, const char *name)
{
    enum { UP = 5, MOST = 1 << 20 };
    g_autofree char *folder = g_path_get_dirname(script);
    if (!g_file_test(script, G_FILE_TEST_IS_REGULAR))
        return NULL;
    for (int i = 0; i < UP; i++) {
        g_autofree char *path =
            g_path_is_absolute(name) ? g_strdup(name) : g_build_filename(folder, name, NULL);
        char *text = NULL;
        gsize length = 0;
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR) && g_file_get_contents(path, &text, &length, NULL)) {
            if (length <= MOST)
                return text;
            g_free(text);
        }
        char *above = g_build_filename(folder, "..", NULL);
        g_free(folder);
        folder = above;
    }
    return NULL;
}

static void by_settings(ExchangeImport *import, const Settings *file, ExchangeSharding *sharding)
{
    const char *stage = said(file, "deepspeed_config.zero_stage"),
               *inner = said(file, "deepspeed_config.deepspeed_config_file"),
               *count = said(file, "num_processes");
    const guint64 processes = count != NULL ? g_ascii_strtoull(count, NULL, 10) : 0;
    if (is_word(file, "distributed_type", "DEEPSPEED")) {
        sharding->deepspeed = true;
        sharding->zero = stage != NULL   ? CLAMP(atoi(stage), 0, 3)
                         : inner != NULL ? MAX(exchange_zero_stage(inner), 0)
                                         : 2; /* Accelerate's own */
        sharding->host_optimizer = is_word(file, "deepspeed_config.offload_optimizer_device", "cpu");
        sharding->host_weights =
            sharding->zero == 3 && is_word(file, "deepspeed_config.offload_param_device", "cpu");
    } else if (is_word(file, "distributed_type", "FSDP")) {
        sharding->fsdp = true;
        sharding->zero = exchange_fsdp_stage(said(file, "fsdp_config.fsdp_sharding_strategy"),
                                             said(file, "fsdp_config.fsdp_reshard_after_forward"));
        sharding->host_optimizer = sharding->host_weights =
            is_word(file, "fsdp_config.fsdp_offload_params", "true");
        sharding->checkpoints = is_word(file, "fsdp_config.fsdp_activation_checkpointing", "true");
    }
    if (processes > 0 && processes <= 1000000 && exchange_import_data(import) == 0)
        exchange_import_native_int(import, "parallel.data", (int)processes);
}

/* False: neither does the name tell. */
static bool by_name(const char *name, ExchangeSharding *sharding)
{
    g_autofree char *own = g_path_get_basename(name);
    const bool plain = exchange_has_word(own, "multi_gpu") || exchange_has_word(own, "single_gpu") ||
                       exchange_has_word(own, "ddp");
    const int stage = exchange_zero_stage(own);
    sharding->fsdp = exchange_has_word(own, "fsdp");
    sharding->deepspeed = !sharding->fsdp && !plain && stage >= 0;
    sharding->zero = sharding->fsdp ? 3 : sharding->deepspeed ? stage : 0;
    return sharding->fsdp || sharding->deepspeed || plain;
}

/* Options of `accelerate launch` itself, which win over the file's. */
static void by_options(ExchangeImport *import, ExchangeSharding *sharding)
{
    int stage = sharding->zero, processes = 0;
    const bool deepspeed = exchange_import_on(import, "use_deepspeed", false),
               fsdp = exchange_import_on(import, "use_fsdp", false);
    if (deepspeed || fsdp) {
        *sharding =
            (ExchangeSharding){.zero = fsdp ? 3 : 2, .deepspeed = deepspeed, .fsdp = fsdp && !deepspeed};
        stage = sharding->zero;
    }
    if (exchange_import_int(import, "zero_stage", &stage) && sharding->deepspeed)
        sharding->zero = CLAMP(stage, 0, 3);
    if (exchange_import_int(import, "num_processes", &processes) && processes > 0 &&
        exchange_import_data(import) == 0)
        exchange_import_native_int(import, "parallel.data", processes);
}

ExchangeSharding exchange_import_accelerate(ExchangeImport *import)
{
    ExchangeSharding sharding = exchange_import_sharding(import);
    const char *name = exchange_import_said(import, "config_file");
    if (sharding.deepspeed || sharding.fsdp)
        return sharding;
    g_autofree char *text = name != NULL ? contents_of(import->path, name) : NULL;
    Settings file;
    g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
    settings_init(&file);
    by_options(import, &sharding); /* whose number of processes is the first that is taken */
    const bool read =
        text != NULL && settings_read(text, strlen(text), name, SETTINGS_YAML, &file, problems, NULL);
    if (read && !sharding.deepspeed && !sharding.fsdp)
        by_settings(import, &file, &sharding);
    settings_clear(&file);
    if (read || name == NULL || sharding.deepspeed || sharding.fsdp)
        return sharding;
    if (by_name(name, &sharding))
        exchange_import_warn(import, "config_file: %.80s is not there; taken as %s by its name", name,
                             sharding.fsdp        ? "FSDP"
                             : sharding.zero == 0 ? "DDP"
                             : sharding.zero == 1 ? "ZeRO 1"
                             : sharding.zero == 2 ? "ZeRO 2"
                                                  : "ZeRO 3");
    else
        exchange_import_warn(import,
                             "config_file: %.80s is not there, and its name tells no sharding; give --set "
                             "parallel.zero=N",
                             name);
    return sharding;
}
