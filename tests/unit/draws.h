/* tests/unit/draws.h - how many random cases a property is tried on.
 *
 * Under the address sanitizer each takes five times as long, and what it looks for, errors of memory, a tenth of them meets.
 * Long fits of numbers are left to the other build where a shorter test runs the same code.
 */
#ifndef ORR_TESTS_UNIT_DRAWS_H
#define ORR_TESTS_UNIT_DRAWS_H

#if defined(__SANITIZE_ADDRESS__)
#define DRAWS(count) (((count) + 9) / 10)
#define SANITIZED    true
#else
#define DRAWS(count) (count)
#define SANITIZED    false
#endif

#endif
