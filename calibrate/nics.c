/* calibrate/nics.c - reads /sys/class/infiniband and /sys/class/net. */
#include "calibrate/nics.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* The file's text without the end of the line; NULL: not there. */
static char *text_at(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strstrip(text) : NULL;
}

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *names_in(const char *folder)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL;
         name = g_dir_read_name(dir))
        g_ptr_array_add(names, g_strdup(name));
    if (dir != NULL)
        g_dir_close(dir);
    g_ptr_array_sort(names, by_text);
    return names;
}

/* NCCL_IB_HCA: names or their beginnings, "=" for whole names, "^" for all but these; ports after ":" are left out. */
static bool is_chosen(const char *name, const char *chosen)
{
    if (chosen == NULL || chosen[0] == '\0')
        return true;
    const bool except = chosen[0] == '^';
    chosen += except;
    const bool whole = chosen[0] == '=';
    chosen += whole;
    g_auto(GStrv) parts = g_strsplit(chosen, ",", -1);
    bool listed = false;
    for (char **part = parts; *part != NULL; part++) {
        g_strdelimit(*part, ":", '\0');
        listed |= (*part)[0] != '\0' && (whole ? strcmp(name, *part) == 0 : g_str_has_prefix(name, *part));
    }
    return listed != except;
}

static void add(CalNics *nics, const char *name, bool infiniband, double bytes_per_s)
{
    if (bytes_per_s <= 0 || nics->count == CAL_MAX_NICS)
        return;
    CalNic *nic = &nics->nic[nics->count++];
    *nic = (CalNic){.infiniband = infiniband, .bytes_per_s = bytes_per_s};
    g_strlcpy(nic->name, name, sizeof nic->name);
}

static double ports_bytes_per_s(const char *device)
{
    g_autofree char *folder = g_build_filename(device, "ports", NULL);
    g_autoptr(GPtrArray) ports = names_in(folder);
    double sum = 0;
    for (guint i = 0; i < ports->len; i++) {
        g_autofree char *port = g_build_filename(folder, (const char *)ports->pdata[i], NULL);
        g_autofree char *state = text_at(port, "state"), *rate = text_at(port, "rate");
        if (rate != NULL && strstr(rate, "Gb/sec") != NULL &&
            (state == NULL || strstr(state, "ACTIVE") != NULL))
            sum += g_ascii_strtod(rate, NULL) * 1e9 / 8;
    }
    return sum;
}

void cal_nics_read(const char *folder, const char *chosen, CalNics *ret_nics)
{
    *ret_nics = (CalNics){.count = 0};
    g_autofree char *verbs = g_build_filename(folder, "class", "infiniband", NULL),
                    *net = g_build_filename(folder, "class", "net", NULL);
    g_autoptr(GPtrArray) devices = names_in(verbs), cards = names_in(net);
    for (guint i = 0; i < devices->len; i++) {
        const char *name = devices->pdata[i];
        g_autofree char *device = g_build_filename(verbs, name, NULL);
        if (is_chosen(name, chosen))
            add(ret_nics, name, true, ports_bytes_per_s(device));
    }
    for (guint i = 0; i < cards->len; i++) {
        const char *name = cards->pdata[i];
        g_autofree char *card = g_build_filename(net, name, NULL);
        g_autofree char *device = g_build_filename(card, "device", NULL); /* bridges and lo have none */
        g_autofree char *state = text_at(card, "operstate"), *speed = text_at(card, "speed");
        if (g_file_test(device, G_FILE_TEST_EXISTS) && speed != NULL && g_strcmp0(state, "up") == 0)
            add(ret_nics, name, false, g_ascii_strtod(speed, NULL) * 1e6 / 8);
    }
}

double cal_nics_per_gpu(const CalNics *nics, int ranks)
{
    double fastest[2] = {0, 0};
    int count = 0;
    for (int i = 0; i < nics->count; i++)
        fastest[nics->nic[i].infiniband] = MAX(fastest[nics->nic[i].infiniband], nics->nic[i].bytes_per_s);
    const bool infiniband = fastest[1] > 0;
    for (int i = 0; i < nics->count; i++)
        count += nics->nic[i].infiniband == infiniband && nics->nic[i].bytes_per_s >= fastest[infiniband];
    if (ranks < 1 || count == 0)
        return 0;
    return fastest[infiniband] * (count >= ranks ? count / ranks : (double)count / ranks);
}
