/* tests/fuzz/fuzz_exchange.c - bytes as every framework's configuration: a scenario document, or one sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange.h"
#include "spec/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* What loads can be exported, or is refused with a reason. */
static void export(const OrrJson *scenario)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    if (!spec_load_json(scenario, "fuzz", NULL, false, spec, NULL, NULL))
        return;
    for (int format = 0; format < EXCHANGE_FORMAT_HF; format++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        const bool ok = exchange_export(spec, scenario, (ExchangeFormat)format, text, &loss, &error);
        require(ok == (error == NULL));
        exchange_loss_write(&loss, text);
        for (int launch = 0; ok && launch < EXCHANGE_LAUNCH_COUNT; launch++)
            require(exchange_export_launch(spec, (ExchangeFormat)format, (ExchangeLaunch)launch, "a 'file'",
                                           text, NULL));
    }
}

static void import(const char *text, size_t size, int format)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(text, size, "fuzz", format, NULL, &loss, &error);
    require((doc != NULL) == (error == NULL));
    if (doc == NULL) {
        require(strchr(error->message, '\n') == NULL && error->code != ORR_ERROR_INTERNAL);
        g_error_free(error);
        return;
    }
    require(orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT);
    g_autoptr(GString) report = g_string_new(NULL);
    exchange_loss_write(&loss, report);
    for (const char *c = report->str; *c != '\0'; c++)
        require(*c == '\n' || !g_ascii_iscntrl(*c));
    export(orr_json_root(doc));
    orr_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_malloc(size + 1); /* ends in NUL, as file contents do */
    memcpy(text, data, size);
    text[size] = '\0';
    for (int format = -1; format < EXCHANGE_FORMAT_COUNT; format++)
        import(text, size, format);
    return 0;
}
