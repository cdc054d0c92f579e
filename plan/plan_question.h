/* plan/plan_question.h - the head of a plan's page: what is trained, and what was asked. */
#ifndef ORR_PLAN_PLAN_QUESTION_H
#define ORR_PLAN_PLAN_QUESTION_H

#include "plan/plan.h"

/* plan/beside.c: the table of several plans. */
void plan_write_beside(const PlanPage *page, GString *out);
/* "fits", "-5.7 GiB", "edge, 60 %"; returns `text`. */
const char *plan_memory_words(const PlanPoint *point, char *text);
/* Tenths of a day; of less than two, two digits. */
void plan_days_text(char *text, double days);
/* Seconds, whatever the size: the rows of a column are read against each other. */
void plan_step_text(char *text, double step_s);
/* "450 W", "10.2 kW"; from 100 kW on "0.7 MW". `text`: ORR_TEXT_SIZE. */
void plan_power_text(char *text, double power_w);

void plan_write_question(const PlanPage *page, GString *out);

#endif
