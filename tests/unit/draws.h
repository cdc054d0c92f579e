/* tests/unit/draws.h - how many random cases a property is tried on.
 *
 * Under the address sanitizer each takes five times as long, and what it looks for, errors of memory, a quarter of them meets.
 */
#ifndef ORR_TESTS_UNIT_DRAWS_H
#define ORR_TESTS_UNIT_DRAWS_H

#if defined(__SANITIZE_ADDRESS__)
#define DRAWS(count) (((count) + 3) / 4)
#else
#define DRAWS(count) (count)
#endif

#endif
