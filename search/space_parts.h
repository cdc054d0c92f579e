/* search/space_parts.h - what the files that list a space share. */
#ifndef ORR_SEARCH_SPACE_PARTS_H
#define ORR_SEARCH_SPACE_PARTS_H

#include "search/space.h"

/* Of a key made of whole numbers. */
static inline guint search_ints_hash(const int *numbers, gsize count)
{
    uint64_t hash = 1469598103934665603u;
    for (gsize i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)numbers[i]) * 0x9E3779B97F4A7C15u;
    return (guint)(hash >> 32);
}

/* Whether the choices of the scenario's search block say anything. */
static inline bool search_restricted(const SpecChoices *choices)
{
    return choices->count > 0 || choices->min > 0 || choices->max > 0;
}

/* Whether they hold the value; all do where they say nothing. */
static inline bool search_allowed(const SpecChoices *choices, int value)
{
    for (int i = 0; i < choices->count; i++)
        if (choices->value[i] == value)
            return true;
    return choices->count == 0 && value >= choices->min && (choices->max == 0 || value <= choices->max);
}
/* "auto" overlap: points try every subset of the flags. */
bool search_varies_overlap(const SearchSpace *space);

/* The scenario at a precision, with the recipes and derived fields that `run` gives it there. */
const Spec *search_at_precision(const SearchSpace *space, int precision);

/* Nothing to shard over: the ZeRO stages are one. */
bool search_is_alone(const Spec *spec, const SearchGroup *group);

/* Numbers of points that are known (search/space_count.c). */
GHashTable *search_counts_new(void);

/* Deals of a pipeline degree, in the space's arena. */
void search_list_partitions(SearchSpace *space, int pipeline, SearchPartitions *ret_partitions);

#endif
