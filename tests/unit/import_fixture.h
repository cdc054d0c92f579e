/* tests/unit/import_fixture.h - files of configurations with what each becomes in a scenario. */
#ifndef ORR_TESTS_IMPORT_FIXTURE_H
#define ORR_TESTS_IMPORT_FIXTURE_H

#include <string.h>

#include "exchange/exchange.h"

enum { IMPORT_MOST = 14 };

typedef struct ImportCase {
    const char *name, *text;
    ExchangeFormat format;
    const char *expect[IMPORT_MOST][2]; /* path, value as JSON; NULL: absent */
} ImportCase;

static const OrrJson *import_at(const OrrJson *node, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (char **key = keys; node != NULL && *key != NULL; key++)
        node = orr_json_member(node, *key);
    return node;
}

static void import_check_as(const ImportCase *one, int format)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(one->text, strlen(one->text), "config", format, NULL, &loss, &error);
    g_assert_no_error(error);
    for (int i = 0; i < IMPORT_MOST && one->expect[i][0] != NULL; i++) {
        const OrrJson *node = import_at(orr_json_root(doc), one->expect[i][0]);
        g_autofree char *text = node != NULL ? orr_json_dump(node) : NULL;
        if (one->expect[i][1] != NULL && text != NULL && strcmp(text, one->expect[i][1]) != 0)
            g_test_message("%s: %s", one->name, one->expect[i][0]);
        g_assert_cmpstr(text, ==, one->expect[i][1]);
    }
    orr_json_free(doc);
}

/* By the format that the file tells, and by the format said. */
static void import_check(const ImportCase *one)
{
    import_check_as(one, -1);
    import_check_as(one, (int)one->format);
}

#endif
