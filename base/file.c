/* base/file.c - whole files, hashes, and the folder of presets. */
#define _GNU_SOURCE /* realpath, dladdr */
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
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

/* A pipe that has a name waits for whoever opens its other end; we wait for him this long. */
enum { PIPE_PATIENCE_S = 5, PIPE_LOOK_MS = 20 };

static int64_t pipe_deadline_us(void)
{
    return g_get_monotonic_time() + PIPE_PATIENCE_S * G_USEC_PER_SEC;
}

static bool nobody_came(GError **error, const char *path, const char *verb, const char *other)
{
    return orr_fail(
        error, ORR_ERROR_IO,
        "%s: cannot %s: it is a pipe that no program opened for %s within %d s; start its other end "
        "first, or give a file",
        path, verb, other, PIPE_PATIENCE_S);
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

struct OrrSink {
    char *path, *temporary, *target; /* temporary NULL: written to directly */
    int fd;                          /* -1: standard output */
};

/* A file beside `path`, which takes its place in the end. Through a symbolic link the file behind it is replaced. */
static bool open_beside(OrrSink *sink, const struct stat *info, GError **error)
{
    char *resolved = info != NULL ? realpath(sink->path, NULL) : NULL;
    sink->target = g_strdup(resolved != NULL ? resolved : sink->path);
    sink->temporary = g_strdup_printf("%s.XXXXXX", sink->target);
    free(resolved);
    sink->fd = g_mkstemp_full(sink->temporary, O_WRONLY, 0666);
    if (sink->fd < 0)
        return io_error(error, sink->path, "cannot write", errno);
    if (info != NULL)
        (void)fchmod(sink->fd, info->st_mode & 07777);
    return true;
}

/* A device or a pipe: a rename would replace it. */
static bool open_special(OrrSink *sink, GError **error)
{
    const int64_t until_us = pipe_deadline_us();
    while ((sink->fd = open(sink->path, O_WRONLY | O_NONBLOCK)) < 0 && errno == ENXIO &&
           g_get_monotonic_time() < until_us)
        g_usleep(PIPE_LOOK_MS * 1000);
    if (sink->fd < 0)
        return errno == ENXIO ? nobody_came(error, sink->path, "write", "reading")
                              : io_error(error, sink->path, "cannot open for writing", errno);
    return fcntl(sink->fd, F_SETFL, fcntl(sink->fd, F_GETFL) & ~O_NONBLOCK) == 0 ||
           io_error(error, sink->path, "cannot open for writing", errno);
}

static bool open_file(OrrSink *sink, GError **error)
{
    struct stat info;
    const bool exists = stat(sink->path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return io_error(error, sink->path, "cannot write", EISDIR);
    if (!exists || S_ISREG(info.st_mode))
        return open_beside(sink, exists ? &info : NULL, error);
    return open_special(sink, error);
}

static void sink_free(OrrSink *sink)
{
    g_free(sink->path);
    g_free(sink->temporary);
    g_free(sink->target);
    g_free(sink);
}

OrrSink *orr_sink_open(const char *path, GError **error)
{
    OrrSink *sink = g_new0(OrrSink, 1);
    sink->path = g_strdup(path);
    sink->fd = -1;
    if (strcmp(path, "-") == 0 || open_file(sink, error))
        return sink;
    sink_free(sink);
    return NULL;
}

static bool stdout_error(GError **error)
{
    if (errno != EPIPE)
        return io_error(error, "standard output", "cannot write", errno);
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "standard output is closed");
    return false;
}

bool orr_sink_write(OrrSink *sink, const char *data, size_t length, GError **error)
{
    if (sink->fd >= 0)
        return write_all(sink->fd, sink->path, data, length, error);
    return fwrite(data, 1, length, stdout) == length || stdout_error(error);
}

bool orr_sink_close(OrrSink *sink, bool keep, GError **error)
{
    bool ok = keep;
    if (sink->fd < 0)
        ok = !keep || fflush(stdout) == 0 || stdout_error(error);
    else if (!keep)
        close(sink->fd);
    else if (sink->temporary != NULL)
        ok = sync_and_close(sink->fd, sink->path, error);
    else
        ok = close(sink->fd) == 0 || io_error(error, sink->path, "cannot write", errno);
    if (ok && keep && sink->temporary != NULL && g_rename(sink->temporary, sink->target) != 0)
        ok = io_error(error, sink->path, "cannot write", errno);
    if ((!ok || !keep) && sink->temporary != NULL)
        g_unlink(sink->temporary);
    sink_free(sink);
    return ok;
}

bool orr_file_write(const char *path, const char *data, size_t length, GError **error)
{
    OrrSink *sink = orr_sink_open(path, error);
    if (sink == NULL)
        return false;
    const bool written = orr_sink_write(sink, data, length, error);
    return orr_sink_close(sink, written, error) && written;
}

typedef struct Reading {
    const char *shown;
    int fd;
    bool begun; /* somebody writes, or has written; true of what is no pipe */
    int64_t until_us;
} Reading;

/* Waits until there may be more. False: it ended, or it is a pipe that nobody came to write. */
static bool wait_for_more(Reading *reading, bool ended)
{
    struct pollfd wait = {.fd = reading->fd, .events = POLLIN};
    if (!ended) { /* a writer that has nothing yet, who may take his time */
        reading->begun = true;
        return poll(&wait, 1, -1) >= 0 || errno == EINTR;
    }
    if (reading->begun || g_get_monotonic_time() > reading->until_us)
        return false;
    if (poll(&wait, 1, PIPE_LOOK_MS) > 0 && (wait.revents & POLLIN) == 0)
        reading->begun = true; /* came and went */
    return true;
}

static bool read_all(Reading *reading, size_t most_bytes, GString *text, GError **error)
{
    char chunk[16384];
    while (text->len <= most_bytes) {
        const ssize_t got = read(reading->fd, chunk, sizeof chunk);
        if (got > 0) {
            reading->begun = true;
            g_string_append_len(text, chunk, got);
        } else if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return io_error(error, reading->shown, "cannot read", errno);
        } else if ((got == 0 || errno == EAGAIN) && !wait_for_more(reading, got == 0)) {
            break;
        }
    }
    if (text->len > most_bytes)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: holds more than the %zu MiB that may be read; is it the right file?",
                        reading->shown, most_bytes >> 20);
    return reading->begun || nobody_came(error, reading->shown, "read", "writing");
}

bool orr_file_may_read(const char *path, GError **error)
{
    const char *folders = g_getenv("ORRERY_READS");
    if (folders == NULL)
        return true;
    g_auto(GStrv) list = g_strsplit(folders, ":", -1);
    char *real = realpath(path, NULL);
    bool may = false;
    for (char **folder = list; real != NULL && *folder != NULL && !may; folder++) {
        char *within = realpath(*folder, NULL);
        const size_t length = within != NULL ? strlen(within) : 0;
        may = length > 0 && strncmp(real, within, length) == 0 && real[length] == '/';
        free(within);
    }
    free(real);
    return may ||
           orr_fail(error, ORR_ERROR_INPUT, "%s: no files are read here; give the name of a preset", path);
}

GString *orr_file_read(const char *path, size_t most_bytes, GError **error)
{
    if (!orr_file_may_read(path, error))
        return NULL;
    const bool standard = strcmp(path, "-") == 0;
    struct stat info;
    Reading reading = {.shown = standard ? "standard input" : path,
                       .fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC),
                       .until_us = pipe_deadline_us()};
    if (reading.fd < 0) {
        io_error(error, path, "cannot read", errno);
        return NULL;
    }
    const bool known = !standard && fstat(reading.fd, &info) == 0;
    reading.begun = !known || !S_ISFIFO(info.st_mode);
    (void)lseek(reading.fd, 0, SEEK_SET); /* from its beginning, where it can be read again */
    GString *text = g_string_sized_new(known ? MIN((gsize)info.st_size + 1, most_bytes) : 0);
    const bool ok = read_all(&reading, most_bytes, text, error);
    if (!standard)
        close(reading.fd);
    if (ok)
        return text;
    g_string_free(text, TRUE);
    return NULL;
}

/* What is wrong with it as text; NULL: nothing. */
static const char *text_problem(const GString *text)
{
    const unsigned char *bytes = (const unsigned char *)text->str;
    if (text->len >= 2 && ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
        return "is UTF-16 text; save the file as UTF-8";
    return memchr(bytes, 0, text->len) != NULL
               ? "holds bytes of zero, so it is not text; is it the right file?"
               : NULL;
}

GString *orr_text_read(const char *path, size_t most_bytes, GError **error)
{
    GString *text = orr_file_read(path, most_bytes, error);
    const char *problem = text != NULL ? text_problem(text) : NULL;
    if (problem == NULL) {
        if (text != NULL && g_str_has_prefix(text->str, ORR_BYTE_ORDER_MARK))
            g_string_erase(text, 0, (gssize)strlen(ORR_BYTE_ORDER_MARK));
        return text;
    }
    orr_fail(error, ORR_ERROR_INPUT, "%s: %s", strcmp(path, "-") == 0 ? "standard input" : path, problem);
    g_string_free(text, TRUE);
    return NULL;
}

OrrFileStamp orr_file_stamp(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return (OrrFileStamp){0};
#ifdef __APPLE__
    const struct timespec modified = info.st_mtimespec, changed = info.st_ctimespec;
#else
    const struct timespec modified = info.st_mtim, changed = info.st_ctim;
#endif
    return (OrrFileStamp){.device = (uint64_t)info.st_dev,
                          .inode = (uint64_t)info.st_ino,
                          .size_bytes = info.st_size,
                          .modified_ns = modified.tv_sec * INT64_C(1000000000) + modified.tv_nsec,
                          .changed_ns = changed.tv_sec * INT64_C(1000000000) + changed.tv_nsec};
}

bool orr_file_stamp_same(const OrrFileStamp *a, const OrrFileStamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

bool orr_file_stamp_settled(const OrrFileStamp *stamp)
{
    enum { COARSEST_CLOCK_S = 2 }; /* of file systems in use: FAT's */
    const int64_t latest = MAX(stamp->modified_ns, stamp->changed_ns) / 1000;
    return stamp->inode != 0 && g_get_real_time() - latest > COARSEST_CLOCK_S * G_USEC_PER_SEC;
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
    if (dladdr(__func__, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    return strchr(info.dli_fname, '/') != NULL
               ? g_canonicalize_filename(info.dli_fname, NULL)
               : g_find_program_in_path(info.dli_fname); /* as it was called */
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
            "ORRERY_SCENARIOS: %s is not a folder; set it to the folder that holds models/ and accelerators/",
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
             "no folder of presets next to the program or at %s; set ORRERY_SCENARIOS to one",
             ORRERY_SOURCE_SCENARIOS);
    return NULL;
}
