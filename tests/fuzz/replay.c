/* tests/fuzz/replay.c - runs a fuzzer's door over its seeds without libFuzzer, so that every build tests it.
 *
 * Each file named on the command line is fed whole, cut short at many places, and with bytes changed by a fixed
 * pseudo-random sequence: the same inputs on every run. A crash, a failed assertion or a sanitizer's
 * finding ends the program. Looking for new inputs is the fuzz preset's work.
 */
#include <glib.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef REPLAY_CUTS /* fewer for doors behind which a whole command runs */
#define REPLAY_CUTS      32
#define REPLAY_MUTATIONS 200
#endif
enum { CUTS = REPLAY_CUTS, MUTATIONS = REPLAY_MUTATIONS, BYTES_PER_MUTATION = 3 };

/* A copy of exactly `size` bytes, so that a sanitizer sees every read past the end. */
static void feed(const char *text, size_t size)
{
    uint8_t *copy = g_malloc(size ? size : 1);
    memcpy(copy, text, size);
    LLVMFuzzerTestOneInput(copy, size);
    g_free(copy);
}

static void feed_mutations(const char *text, size_t size)
{
    GRand *random = g_rand_new_with_seed(1);
    char *copy = g_malloc(size);
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(copy, text, size);
        for (int b = 0; b < BYTES_PER_MUTATION; b++) {
            size_t to = (size_t)g_rand_int_range(random, 0, (gint32)size);
            size_t from = (size_t)g_rand_int_range(random, 0, (gint32)size);
            copy[to] = g_rand_boolean(random) ? text[from] : (char)g_rand_int_range(random, 0, 256);
        }
        feed(copy, size);
    }
    g_free(copy);
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        g_printerr("%s: no seeds given\n", argv[0]);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        char *text = NULL;
        gsize size = 0;
        GError *error = NULL;
        if (!g_file_get_contents(argv[i], &text, &size, &error)) {
            g_printerr("%s\n", error->message);
            g_error_free(error);
            return 1;
        }
        feed(text, size);
        for (size_t cut = 0; cut < CUTS; cut++)
            feed(text, size * cut / CUTS);
        if (size > 0)
            feed_mutations(text, size);
        g_free(text);
    }
    return 0;
}
