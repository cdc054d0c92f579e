/* search/axes.h - the fields of a scenario that may be "auto": one row each.
 *
 * Everything that goes through these fields folds over the rows: whether a scenario has any, which groups are neighbours,
 * which groups share tables, what a choice is in a Spec, in words, as JSON, as CSV, and in a scenario that is saved.
 * Tested: unit/search/test_axes.c
 */
#ifndef ORR_SEARCH_AXES_H
#define ORR_SEARCH_AXES_H

#include "base/json.h"
#include "search/space.h"

typedef enum {
    SEARCH_AXIS_NUMBER,
    SEARCH_AXIS_TRUTH, /* an int: 0 and 1 are false and true */
    SEARCH_AXIS_FLAG,  /* a bool */
    SEARCH_AXIS_WORD,
    SEARCH_AXIS_OTHER /* no int: `write` and `text` know how */
} SearchAxisForm;

/* What is worked out once for all groups that have an axis alike. Bits. */
typedef enum {
    SEARCH_KEY_COST = 1,   /* what a layer takes */
    SEARCH_KEY_PLACED = 2, /* the same, where the groups place ranks differently (search_placed_alike()) */
    SEARCH_KEY_COUNT = 4   /* how many points a group has */
} SearchKey;

#define SEARCH_AXES_ALONG 4

/* Members that are 0 do what most axes do. */
typedef struct SearchAxis {
    const char *key;    /* "parallel.tensor" */
    const char *column; /* in CSV; NULL: the last word of the key; "": none */
    SearchAxisForm form;
    const SpecWords *words; /* of SEARCH_AXIS_WORD */
    size_t offset;          /* in Spec; an int, or the bool of SEARCH_AXIS_FLAG */
    bool follows;           /* never "auto" itself: it comes with another choice */
    bool settled; /* saved even where the scenario's own value stays, as others are derived from it */
    bool planned; /* a plan tells its configurations by it */
    bool inexact; /* told to people, but neither saved nor in JSON: another axis says it as a whole */

    /* In groups. */
    bool grouped;  /* groups differ in it: an int at `member` of SearchGroup */
    size_t member; /* of the value, or of its index in the space */
    bool derived;  /* the others decide it: no choice of its own among neighbours */
    bool indexed;  /* `member` is no value that can be set: search_apply_group() knows it */
    unsigned keys; /* SearchKey */
    const char *along[SEARCH_AXES_ALONG]; /* axes that a neighbour may change together with it */

    /* In words: "tp8" is tag "tp". */
    int place; /* among the words of a point, from 1; 0: none */
    const char *tag;
    bool joined; /* without a blank before it */
    int least;   /* shown from this value on */

    bool (*is_auto)(const Spec *asked);                      /* NULL: the int is SPEC_AUTO */
    bool (*is_set)(const Spec *asked, const Spec *chosen);   /* what a choice says; NULL: what was "auto" */
    bool (*is_saved)(const Spec *asked, const Spec *chosen); /* NULL: the int differs, or `settled` */
    bool (*is_shown)(const Spec *asked, const Spec *chosen); /* in words; NULL: always */
    void (*write)(OrrJsonWriter *w, const char *key, const Spec *chosen); /* as a scenario has it */
    char *(*text)(const Spec *chosen);                                    /* as people read it */
    char *(*cell)(const Spec *chosen); /* in CSV and in words; NULL: text */
} SearchAxis;

const SearchAxis *search_axes(int *ret_count);
/* NULL: no such axis. */
const SearchAxis *search_axis(const char *key);
/* "tensor" of "parallel.tensor". */
const char *search_axis_member(const SearchAxis *axis);
/* Name of its column in CSV; NULL: it has none. */
const char *search_axis_column(const SearchAxis *axis);

/* True when the scenario leaves it to be chosen. */
bool search_axis_is_auto(const SearchAxis *axis, const Spec *asked);
/* True when a choice has it: what was "auto", and what came with that. */
bool search_axis_is_set(const SearchAxis *axis, const Spec *asked, const Spec *chosen);
bool search_axis_is_saved(const SearchAxis *axis, const Spec *asked, const Spec *chosen);

int search_axis_value(const SearchAxis *axis, const Spec *spec);
/* A group's value of a `grouped` axis, or its index; and the same set in a scenario, of one that is not `indexed`. */
int search_axis_of_group(const SearchAxis *axis, const SearchGroup *group);
void search_axis_apply(const SearchAxis *axis, const SearchGroup *group, Spec *spec);

/* As a scenario has it: a member of an open object, or with `key` NULL a value alone. */
void search_axis_write(const SearchAxis *axis, OrrJsonWriter *w, const char *key, const Spec *chosen);
/* "8", "true", "flash2"; g_free. A cell has 0 and 1 for false and true. */
char *search_axis_text(const SearchAxis *axis, const Spec *chosen);
char *search_axis_cell(const SearchAxis *axis, const Spec *chosen);

/* Numbers of a group under a key, into `ret_numbers` [SEARCH_AXES_MOST]; gives their count. */
#define SEARCH_AXES_MOST 40
int search_axes_key(const SearchGroup *group, unsigned keys, int *ret_numbers);

/* The words of a point: " tp8 sp pp35", a blank before each. */
void search_axes_describe(const Spec *asked, const Spec *chosen, GString *out);

#endif
