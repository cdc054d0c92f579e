/* base/file.c - whole files, hashes, and the folder of presets. */
#define _GNU_SOURCE /* realpath, dladdr */
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool io_error(GError **error, const char *path, const char *what, int code)
{
    orr_fail(error, ORR_ERROR_IO, "%s: %s: %s", path, what, g_strerror(code));
    return false;
}

static bool write_all(int fd, const char *path, const char *data, size_t length, GError **error)
{
    while (length > 0) {
        ssize_t wrote = write(fd, data, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return io_error(error, path, "cannot write", errno);
        data += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

/* Devices and pipes (/dev/null, /dev/stdout) are written to: a rename would replace them. */
static bool write_special(const char *path, const char *data, size_t length, GError **error)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return io_error(error, path, "cannot open for writing", errno);
    bool ok = write_all(fd, path, data, length, error);
    if (close(fd) != 0 && ok)
        return io_error(error, path, "cannot write", errno);
    return ok;
}

static bool sync_and_close(int fd, const char *path, GError **error)
{
    /* Some file systems cannot sync; that is no reason to refuse. */
    bool synced = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    int code = errno;
    if (close(fd) != 0 && synced) {
        synced = false;
        code = errno;
    }
    return synced || io_error(error, path, "cannot write", code);
}

bool orr_file_write(const char *path, const char *data, size_t length, GError **error)
{
    if (strcmp(path, "-") == 0) {
        if (fwrite(data, 1, length, stdout) == length && fflush(stdout) == 0)
            return true;
        return io_error(error, "standard output", "cannot write", errno);
    }
    struct stat info;
    const bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return io_error(error, path, "cannot write", EISDIR);
    if (exists && !S_ISREG(info.st_mode))
        return write_special(path, data, length, error);
    /* Through a symbolic link the file behind it is replaced, not the link. */
    char *resolved = exists ? realpath(path, NULL) : NULL;
    g_autofree char *temporary = g_strdup_printf("%s.XXXXXX", resolved != NULL ? resolved : path);
    g_autofree char *target = g_strdup(resolved != NULL ? resolved : path);
    free(resolved);
    int fd = g_mkstemp_full(temporary, O_WRONLY, 0666);
    if (fd < 0)
        return io_error(error, path, "cannot write", errno);
    if (exists)
        (void)fchmod(fd, info.st_mode & 07777);
    bool ok = write_all(fd, path, data, length, error);
    if (!ok)
        close(fd);
    else
        ok = sync_and_close(fd, path, error);
    if (ok && g_rename(temporary, target) != 0)
        ok = io_error(error, path, "cannot write", errno);
    if (!ok)
        g_unlink(temporary);
    return ok;
}

GString *orr_file_read(const char *path, size_t most_bytes, GError **error)
{
    const bool standard = strcmp(path, "-") == 0;
    const char *shown = standard ? "standard input" : path;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (file == NULL) {
        orr_fail(error, ORR_ERROR_IO, "%s: cannot read: %s", shown, g_strerror(errno));
        return NULL;
    }
    if (standard) /* from its beginning, where it can be read again */
        (void)fseek(stdin, 0, SEEK_SET);
    GString *text = g_string_new(NULL);
    char chunk[16384];
    size_t count;
    while (text->len <= most_bytes && (count = fread(chunk, 1, sizeof chunk, file)) > 0)
        g_string_append_len(text, chunk, (gssize)count);
    const bool failed = ferror(file) != 0;
    const int code = errno;
    if (!standard)
        fclose(file);
    if (failed || text->len > most_bytes) {
        if (failed)
            orr_fail(error, ORR_ERROR_IO, "%s: cannot read: %s", shown, g_strerror(code));
        else
            orr_fail(error, ORR_ERROR_INPUT,
                     "%s: holds more than the %zu MiB that may be read; is it the right file?", shown,
                     most_bytes >> 20);
        g_string_free(text, TRUE);
        return NULL;
    }
    return text;
}

char *orr_hash_text(const char *data, size_t length)
{
    char *hex = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)data, length);
    hex[16] = '\0';
    return hex;
}

/* The file that holds this code: the program, or the library that another program has loaded; g_free. */
static char *own_file(void)
{
    Dl_info info;
    return dladdr(__func__, &info) != 0 && info.dli_fname != NULL
               ? g_canonicalize_filename(info.dli_fname, NULL)
               : NULL;
}

/* Presets as installations place them as seen from a file, which is freed. NULL: none. */
static char *presets_beside(char *file)
{
    static const char *const places[] = {"scenarios", "../share/orrery/scenarios",
                                         "../../share/orrery/scenarios"};
    g_autofree char *owned = file, *folder = file != NULL ? g_path_get_dirname(file) : NULL;
    for (gsize i = 0; folder != NULL && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(folder, places[i], NULL),
                        *probe = g_build_filename(path, "accelerators", NULL);
        if (g_file_test(probe, G_FILE_TEST_IS_DIR))
            return g_steal_pointer(&path);
    }
    return NULL;
}

char *orr_scenarios_dir(GError **error)
{
    const char *given = g_getenv("ORRERY_SCENARIOS");
    if (given != NULL && given[0] != '\0') {
        if (g_file_test(given, G_FILE_TEST_IS_DIR))
            return g_strdup(given);
        g_set_error(
            error, ORR_ERROR, ORR_ERROR_IO,
            "ORRERY_SCENARIOS: %s is no folder; set it to the folder that holds models/ and accelerators/",
            given);
        return NULL;
    }
    char *found = presets_beside(g_file_read_link("/proc/self/exe", NULL));
    if (found == NULL)
        found = presets_beside(own_file());
    if (found != NULL)
        return found;
    if (g_file_test(ORRERY_SOURCE_SCENARIOS, G_FILE_TEST_IS_DIR))
        return g_strdup(ORRERY_SOURCE_SCENARIOS);
    orr_fail(error, ORR_ERROR_IO,
             "no folder of presets beside the program or at %s; set ORRERY_SCENARIOS to one",
             ORRERY_SOURCE_SCENARIOS);
    return NULL;
}
