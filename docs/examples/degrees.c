/* degrees.c - step time over tensor-parallel degrees, through liborrery.
 *
 *   cc degrees.c $(pkg-config --cflags --libs orrery) -o degrees && ./degrees scenarios/examples/gpt3-175b.json
 */
#include <orrery.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    OrrHandle *orrery = orr_new();
    int failed = argc != 2;
    for (int tensor = 1; !failed && tensor <= 8; tensor *= 2) {
        char set[64];
        snprintf(set, sizeof set, "parallel.tensor=%d", tensor);
        if (orr_load(orrery, argv[1]) != 0 || orr_set(orrery, "parallel.data=auto") != 0 ||
            orr_set(orrery, set) != 0) {
            failed = 1;
            break;
        }
        const char *report = orr_run(orrery, NULL); /* JSON; lives until the next call */
        const char *step = report != NULL ? strstr(report, "\"step_s\":") : NULL;
        if (step != NULL)
            printf("tensor %d: %.3f s\n", tensor, strtod(step + strlen("\"step_s\":"), NULL));
        else
            printf("tensor %d: %s\n", tensor, orr_error(orrery));
    }
    if (failed)
        fprintf(stderr, "%s\n", argc != 2 ? "usage: degrees SCENARIO.json" : orr_error(orrery));
    orr_free(orrery);
    return failed;
}
