/* calibrate/measure/team_spawn.c - a process for each GPU of this machine, started by the first. */
#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrate/measure/team.h"

/* A port of this machine that nobody listens at now. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    const int line = socket(AF_INET, SOCK_STREAM, 0);
    const bool ok = line >= 0 && bind(line, (struct sockaddr *)&address, size) == 0 &&
                    getsockname(line, (struct sockaddr *)&address, &size) == 0;
    if (line >= 0)
        close(line);
    return ok ? ntohs(address.sin_port) : 0;
}

static char **environment_of(int rank, int ranks, int port)
{
    const char *const names[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "ORRERY_PORT"};
    const int values[] = {rank, rank, ranks, ranks, port};
    char **environment = g_environ_setenv(g_get_environ(), "MASTER_ADDR", "127.0.0.1", TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        char text[16];
        g_snprintf(text, sizeof text, "%d", values[i]);
        environment = g_environ_setenv(environment, names[i], text, TRUE);
    }
    return environment;
}

bool cal_team_spawn(CalTeam *team, int ranks, char *const *arguments, char *reason, size_t reason_size)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    const int port = free_port();
    if (self == NULL || port == 0) {
        g_snprintf(reason, reason_size, "no process a GPU can be started: %s",
                   self == NULL ? "/proc is not there" : g_strerror(errno));
        return false;
    }
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, self);
    for (int i = 0; arguments[i] != NULL; i++)
        g_ptr_array_add(argv, arguments[i]);
    g_ptr_array_add(argv, NULL);
    for (int rank = 1; rank < ranks; rank++) {
        g_auto(GStrv) environment = environment_of(rank, ranks, port);
        GError *error = NULL;
        if (!g_spawn_async(NULL, (char **)argv->pdata, environment, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                           &error)) {
            g_snprintf(reason, reason_size, "no process a GPU can be started: %s", error->message);
            g_clear_error(&error);
            return false; /* those that were started give up when nobody lets them in */
        }
    }
    team->rank = 0;
    team->ranks = ranks;
    team->port = port;
    g_snprintf(team->address, sizeof team->address, "127.0.0.1");
    return true;
}
