/* base/prefetch.h - a hint that memory will be read soon, where the compiler has one. */
#ifndef ORR_BASE_PREFETCH_H
#define ORR_BASE_PREFETCH_H

static inline void orr_prefetch(const void *what)
{
#if defined __GNUC__
    __builtin_prefetch(what);
#else
    (void)what;
#endif
}

#endif
