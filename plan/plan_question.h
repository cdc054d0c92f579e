/* plan/plan_question.h - the head of a plan's page: what is trained, and what was asked. */
#ifndef ORR_PLAN_PLAN_QUESTION_H
#define ORR_PLAN_PLAN_QUESTION_H

#include "plan/plan.h"

void plan_write_question(const PlanPage *page, GString *out);

#endif
