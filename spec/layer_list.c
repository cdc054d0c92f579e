/* spec/layer_list.c - see layer_list.h. */
#include "spec/layer_list.h"

#include <string.h>

#include "spec/fields_internal.h"
#include "spec/texts.h"

#define MOST_LAYERS 100000
#define NUMBERS     7 /* of a layer in the text */

static const SpecField layer_fields[] = {
    SPEC_F_NAME(SpecLayer, name, "\"layer\"", "What tables call the layer."),
    SPEC_F_DOUBLE(SpecLayer, flops, ORR_UNIT_NONE, 0, 1e18, "0", 0,
                  "FLOPs of the forward of one sample, 2 a multiply-add; the backward has twice as many."),
    SPEC_F_DOUBLE(SpecLayer, parameters, ORR_UNIT_NONE, 0, 1e15, "0", 0, "Parameters of the layer."),
    SPEC_F_DOUBLE(SpecLayer, activation_bytes, ORR_UNIT_BYTES, 0, 1e15, "0", 0,
                  "Kept for the backward, of one sample."),
    SPEC_F_DOUBLE(
        SpecLayer, output_bytes, ORR_UNIT_BYTES, 0, 1e15, NULL, SPEC_FIELD_DERIVED,
        "What the next layer reads, of one sample: it crosses to the next pipeline stage and between "
        "tensor ranks; default activation_bytes."),
    SPEC_F_INT(SpecLayer, groups, 1, 1e6, "1", 0,
               "Groups of channels. Each reads its own alone: tensor ranks, where they divide the groups, "
               "exchange nothing before it."),
    SPEC_F_DOUBLE(SpecLayer, seconds, ORR_UNIT_SECONDS, 0, 1e6, "0", 0,
                  "Measured: forward and backward of one sample, a third of it forward; 0: from FLOPs and "
                  "bytes."),
    SPEC_F_INT(SpecLayer, kernels, 1, 1e6, "1", 0,
               "Kernels of the layer's forward: its product, and kernels that only move bytes."),
    SPEC_F_INT(SpecLayer, repeat, 1, MOST_LAYERS, "1", 0, "Number of identical layers in a row."),
};
SPEC_TABLE(spec_table_layer, "model.layers", "One layer of a network that is not a transformer.",
           layer_fields);

static void append_number(GString *text, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_c(text, '\t');
    g_string_append(text, g_ascii_dtostr(number, sizeof number, value));
}

static void append_layer(GString *text, const SpecLayer *layer)
{
    g_autofree char *name = g_strdelimit(g_strdup(layer->name), "\t\n", ' ');
    for (int i = 0; i < layer->repeat; i++) {
        g_string_append(text, name);
        append_number(text, layer->flops);
        append_number(text, layer->parameters);
        append_number(text, layer->activation_bytes);
        append_number(text, layer->seconds);
        append_number(text, layer->kernels);
        append_number(text, layer->output_bytes);
        append_number(text, layer->groups);
        g_string_append_c(text, '\n');
    }
}

bool spec_layer_list_take(SpecReadContext *context, const OrrJson *list, SpecModel *model, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int64_t count = 0;
    double parameters = 0;
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item)) {
        SpecLayer layer = {.repeat = 1};
        context->quiet++;
        const bool ok = spec_read_table(context, &spec_table_layer, item, &layer, error);
        context->quiet--;
        if (!ok)
            return false;
        if (layer.output_bytes < 0)
            layer.output_bytes = layer.activation_bytes;
        count += layer.repeat;
        if (count > MOST_LAYERS)
            return spec_read_fail(context, NULL, error, "lists more than %d layers; give fewer", MOST_LAYERS);
        parameters += layer.parameters * layer.repeat;
        append_layer(text, &layer);
    }
    if (count == 0 || !(parameters > 0))
        return spec_read_fail(context, NULL, error,
                              "lists no layer with parameters; give at least one with \"parameters\"");
    model->layers = (int)count;
    model->list.text = spec_keep_text(context->texts, text->str);
    return true;
}

bool spec_layer_list_next(const char **at, SpecLayer *ret_layer)
{
    const char *end = strchr(*at, '\t');
    SpecLayer layer = {.repeat = 1};
    double number[NUMBERS];
    if (end == NULL)
        return false;
    g_strlcpy(layer.name, *at, MIN(sizeof layer.name, (gsize)(end - *at) + 1));
    for (int i = 0; i < NUMBERS; i++) {
        char *behind = NULL;
        number[i] = g_ascii_strtod(end + 1, &behind);
        end = behind;
    }
    layer.flops = number[0];
    layer.parameters = number[1];
    layer.activation_bytes = number[2];
    layer.seconds = number[3];
    layer.kernels = (int)number[4];
    layer.output_bytes = number[5];
    layer.groups = (int)number[6];
    *ret_layer = layer;
    *at = end + 1;
    return true;
}
