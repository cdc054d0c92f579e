/*
 * tests/main.h - the main() of a program of many tests (builds.cmake)
 *
 * The name that the program is called by, or else its first argument, says which test runs.
 */
#include <stdio.h>
#include <string.h>

#define TEST(name) int name##_main(int argc, char **argv);
#include TESTS
#undef TEST

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } tests[] = {
#define TEST(name) {#name, name##_main},
#include TESTS
#undef TEST
    };
    for (int shift = 0; shift < 2 && shift < argc; shift++) {
        const char *slash = strrchr(argv[shift], '/');
        const char *name = slash ? slash + 1 : argv[shift];
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
            if (strcmp(name, tests[i].name) == 0)
                return tests[i].run(argc - shift, argv + shift);
    }
    fprintf(stderr, "usage: %s TEST [option...]; tests:", argc > 0 ? argv[0] : "tests");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        fprintf(stderr, " %s", tests[i].name);
    fputs("\n", stderr);
    return 2;
}
