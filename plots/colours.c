/* plots/colours.c - one colour a word, in every picture and on the page.
 *
 * After Okabe and Ito, with steps of lightness between what stands side by side in a step: told apart with any colour
 * vision and in print without colours. Words of one thing share a colour: the compute of a step is the forward's blue.
 * Source: Okabe and Ito 2008, "Color universal design"   Tested: unit/plots/test_colours.c
 */
#include "plots/colours.h"

const PlotColour plot_colours[PLOT_COLOURS] = {
    {"forward", "#0066A6"},
    {"backward", "#009E73"},
    {"weight gradient", "#8CD3B9"},
    {"recompute", "#EEDF45"},
    {"tensor comm", "#E38B00"},
    {"pipeline send", "#6FBCEB"},
    {"data comm", "#B5508F"},
    {"optimizer", "#3D1F66"},
    {"forward and backward", "#27408B"},
    {"context comm", "#7A3F00"},
    {"expert comm", "#F2B97A"},
    {"offload", "#80664F"},
    {"other", "#E0503C"},
    {"kernel loss", "#B9C3CE"},
    {"bubble", "#8F8F8F"},
    {"slow GPUs", "#A3262A"},
    {"longest texts", "#AA4499"},
    {"input", "#525252"},
    {"weights", "#35607A"}, /* of memory, with the optimizer's */
    {"gradients", "#8FB3C9"},
    {"activations", "#F4C152"},
    {"workspace", "#B0713A"},
    {"reserved besides", "#DDDDDD"},
    {"compute", "#0066A6"}, /* from here on the words of other pictures for what is above */
    {"pipeline comm", "#6FBCEB"},
    {"dense peak", "#0066A6"},
    {"model FLOPs", "#0066A6"},
};

const char *plot_colour(const char *word)
{
    for (int i = 0; i < PLOT_COLOURS; i++)
        if (g_str_equal(plot_colours[i].word, word))
            return plot_colours[i].code;
    g_assert_not_reached();
}
