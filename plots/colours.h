/* plots/colours.h - one colour a word, in every picture and on the page. */
#ifndef ORR_PLOTS_COLOURS_H
#define ORR_PLOTS_COLOURS_H

#include <glib.h>

typedef struct PlotColour {
    const char *word, *code; /* "forward", "#0066A6" */
} PlotColour;

enum {
    PLOT_COLOURS_SIDE_BY_SIDE = 8, /* the first: of steps that are usual */
    PLOT_COLOURS_OF_A_STEP = 13,   /* the first: of a timeline */
    PLOT_COLOURS = 27
};
extern const PlotColour plot_colours[PLOT_COLOURS];

/* Of a word of the table, "#0066A6". */
const char *plot_colour(const char *word);

#endif
