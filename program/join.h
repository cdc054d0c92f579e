/* program/join.h - several folded programs as one: jobs beside each other. */
#ifndef ORR_PROGRAM_JOIN_H
#define ORR_PROGRAM_JOIN_H

#include "sim/engine.h"

/* One program of the classes of all parts, the first part's first, which meet nowhere until somebody gives them shares of
 * one resource. Part i runs `times[i]` steps one after the other. Every part has one replica a class (folded). Fails where
 * parts differ in their tables of streams, memory kinds or tiers, have capacity events, or two of them are skewed and not. */
bool sim_program_join(const SimProgram *parts, const int *times, int count, OrrArena *arena,
                      SimProgram *ret_program, GError **error);

/* The result of the first `ranks` ranks alone. */
void sim_result_cut(SimResult *result, int ranks, bool skewed);

#endif
