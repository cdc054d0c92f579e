/* tests/unit/plots/test_colours.c - colours of the pictures are told apart with any colour vision, and without colours. */
#include <math.h>

#include "plots/colours.h"

/* How linear RGB looks to those who lack a cone: Machado, Oliveira and Fernandes 2009, severity 1. */
static const double visions[4][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
};

static double curve(double t)
{
    return t > 216.0 / 24389.0 ? cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0;
}

/* CIE L*a*b* (D65) of "#RRGGBB" as one of the visions has it. */
static void lab(const char *code, int vision, double ret_lab[3])
{
    static const double xyz[3][3] = {{0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047},
                                     {0.2126729, 0.7151522, 0.0721750},
                                     {0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883}};
    const guint64 value = g_ascii_strtoull(code + 1, NULL, 16);
    double linear[3], seen[3], f[3];
    for (int i = 0; i < 3; i++) {
        const double part = (double)(value >> (16 - 8 * i) & 255) / 255.0;
        linear[i] = part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
    }
    for (int i = 0; i < 3; i++)
        seen[i] = CLAMP(visions[vision][i][0] * linear[0] + visions[vision][i][1] * linear[1] +
                            visions[vision][i][2] * linear[2],
                        0.0, 1.0);
    for (int i = 0; i < 3; i++)
        f[i] = curve(xyz[i][0] * seen[0] + xyz[i][1] * seen[1] + xyz[i][2] * seen[2]);
    ret_lab[0] = 116 * f[1] - 16;
    ret_lab[1] = 500 * (f[0] - f[1]);
    ret_lab[2] = 200 * (f[1] - f[2]);
}

/* Kinds of a timeline, each pair: dE of 10 and more. */
static void test_any_vision(void)
{
    for (int a = 0; a < PLOT_COLOURS_OF_A_STEP; a++)
        for (int b = 0; b < a; b++)
            for (int vision = 0; vision < 4; vision++) {
                double one[3], other[3];
                lab(plot_colours[a].code, vision, one);
                lab(plot_colours[b].code, vision, other);
                const double distance =
                    sqrt(pow(one[0] - other[0], 2) + pow(one[1] - other[1], 2) + pow(one[2] - other[2], 2));
                if (distance < 10)
                    g_error("%s and %s look alike to vision %d: %.1f", plot_colours[a].word,
                            plot_colours[b].word, vision, distance);
            }
}

static void check_greys(const char *const *words, int count)
{
    for (int a = 0; a < count; a++)
        for (int b = 0; b < a; b++) {
            double one[3], other[3];
            lab(plot_colour(words[a]), 0, one);
            lab(plot_colour(words[b]), 0, other);
            if (fabs(one[0] - other[0]) < 6)
                g_error("%s and %s are one grey: %.1f and %.1f", words[a], words[b], one[0], other[0]);
        }
}

/* What stands side by side in usual steps, and in memory, differs in lightness too: 6 L* and more. */
static void test_grey(void)
{
    static const char *const memory[] = {"weights",     "gradients", "optimizer",
                                         "activations", "workspace", "reserved besides"};
    const char *step[PLOT_COLOURS_SIDE_BY_SIDE];
    for (int i = 0; i < PLOT_COLOURS_SIDE_BY_SIDE; i++)
        step[i] = plot_colours[i].word;
    check_greys(step, PLOT_COLOURS_SIDE_BY_SIDE);
    check_greys(memory, (int)G_N_ELEMENTS(memory));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/colours/any-vision", test_any_vision);
    g_test_add_func("/plots/colours/grey", test_grey);
    return g_test_run();
}
