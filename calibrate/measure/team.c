/* calibrate/measure/team.c - ranks from the environment, lines over TCP. */
#include "calibrate/measure/team.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define DEFAULT_PORT  29617
#define MAGIC         0x4f525259u
#define WELCOME       0x4f525257 /* rank 0's answer: a line to somebody else, or to oneself, does not give it */
#define NODE_SIZE     128
#define RETRY_NS      100000000L
#define ALONE_SECONDS 120 /* that one process waits for its GPUs */

/* --- the environment --- */

static bool number_of(const char *variable, int least, int most, int *ret_value, char *reason,
                      size_t reason_size)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const long value = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || text[0] == '\0' || *end != '\0' || value < least || value > most) {
        snprintf(reason, reason_size, "the environment says %s=%.40s; a number from %d to %d was expected",
                 variable, text != NULL ? text : "", least, most);
        return false;
    }
    *ret_value = (int)value;
    return true;
}

static const struct {
    const char *rank, *ranks, *local, *local_ranks; /* the last: how many are on this node; NULL: not said */
} launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
};

bool cal_team_first_host(const char *list, char *ret_host, size_t size)
{
    const size_t plain = strcspn(list, "[,");
    size_t digits = 0;
    if (list[plain] == '[')
        digits = strcspn(list + plain + 1, "-,]");
    if (plain + digits == 0 || plain + digits + 1 > size)
        return false;
    memcpy(ret_host, list, plain);
    memcpy(ret_host + plain, list + plain + 1, digits);
    ret_host[plain + digits] = '\0';
    return true;
}

static bool find_address(CalTeam *team, const char *local_ranks, char *reason, size_t reason_size)
{
    static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
    const char *master = getenv("MASTER_ADDR"), *local = local_ranks != NULL ? getenv(local_ranks) : NULL;
    if (master != NULL && master[0] != '\0') {
        snprintf(team->address, sizeof team->address, "%s", master);
        return true;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (getenv(lists[i]) != NULL &&
            cal_team_first_host(getenv(lists[i]), team->address, sizeof team->address))
            return true;
    if (local != NULL && atoi(local) == team->ranks) {
        snprintf(team->address, sizeof team->address, "127.0.0.1");
        return true;
    }
    snprintf(reason, reason_size, "%d ranks, and nothing says where rank 0 is; set MASTER_ADDR to its host",
             team->ranks);
    return false;
}

static bool find_port(CalTeam *team, char *reason, size_t reason_size)
{
    team->port = DEFAULT_PORT;
    if (getenv("ORRERY_PORT") != NULL)
        return number_of("ORRERY_PORT", 1, 65535, &team->port, reason, reason_size);
    if (getenv("MASTER_PORT") == NULL)
        return true;
    const bool ok = number_of("MASTER_PORT", 1, 65535, &team->port, reason, reason_size);
    team->port += team->port < 65535 ? 1 : -1;
    return ok;
}

bool cal_team_find(CalTeam *ret_team, char *reason, size_t reason_size)
{
    CalTeam team = {.ranks = 1, .nodes = 1, .ranks_per_node = 1, .timeout_s = ALONE_SECONDS};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (getenv(launchers[i].rank) == NULL || getenv(launchers[i].ranks) == NULL)
            continue;
        if (!number_of(launchers[i].ranks, 1, CAL_MAX_RANKS, &team.ranks, reason, reason_size) ||
            !number_of(launchers[i].rank, 0, team.ranks - 1, &team.rank, reason, reason_size))
            return false;
        if (team.ranks == 1)
            break;
        if (getenv(launchers[i].local) != NULL &&
            !number_of(launchers[i].local, 0, team.ranks - 1, &team.local_rank, reason, reason_size))
            return false;
        if (!find_address(&team, launchers[i].local_ranks, reason, reason_size) ||
            !find_port(&team, reason, reason_size))
            return false;
        break;
    }
    *ret_team = team;
    return true;
}

/* --- lines --- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool send_all(int line, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(line, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool receive_all(int line, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = recv(line, (char *)data + done, size - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* What a rank says first. */
typedef struct Hello {
    uint32_t magic, rank, ranks;
    char node[NODE_SIZE];
} Hello;

static Hello hello_of(const CalTeam *team, const char *node)
{
    Hello hello = {.magic = MAGIC, .rank = (uint32_t)team->rank, .ranks = (uint32_t)team->ranks};
    snprintf(hello.node, sizeof hello.node, "%s", node);
    return hello;
}

static void set_timeout(int line, double seconds)
{
    const struct timeval timeout = {(time_t)seconds,
                                    (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))};
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

static void tune(int line)
{
    const int on = 1;
    setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(line, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef TCP_KEEPIDLE /* a node that lost its power is known after a minute and a half, not after two hours */
    const int idle_s = 30, between_s = 15, times = 4;
    setsockopt(line, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(line, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(line, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
#endif
}

static struct addrinfo *look_up(const CalTeam *team, const char *address, int flags)
{
    char port[16];
    struct addrinfo hints, *found = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    snprintf(port, sizeof port, "%d", team->port);
    return getaddrinfo(address, port, &hints, &found) == 0 ? found : NULL;
}

/* Any interface, both families where the system has them. */
static int listen_here(const CalTeam *team)
{
    struct addrinfo *found = look_up(team, NULL, AI_PASSIVE);
    int line = -1;
    const int on = 1, off = 0;
    for (int wanted = AF_INET6; line < 0 && wanted != 0; wanted = wanted == AF_INET6 ? AF_INET : 0)
        for (struct addrinfo *at = found; line < 0 && at != NULL; at = at->ai_next) {
            if (at->ai_family != wanted ||
                (line = socket(at->ai_family, at->ai_socktype, at->ai_protocol)) < 0)
                continue;
            setsockopt(line, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (wanted == AF_INET6)
                setsockopt(line, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
            if (bind(line, at->ai_addr, at->ai_addrlen) != 0 || listen(line, CAL_MAX_RANKS) != 0) {
                close(line);
                line = -1;
            }
        }
    if (found != NULL)
        freeaddrinfo(found);
    return line;
}

static bool count_nodes(CalTeam *team, char (*nodes)[NODE_SIZE], char *reason, size_t reason_size)
{
    int here = 0;
    team->nodes = 0;
    team->ranks_per_node = -1;
    for (int i = 0; i < team->ranks; i++) {
        here++;
        if (i + 1 < team->ranks && strcmp(nodes[i], nodes[i + 1]) == 0)
            continue;
        for (int j = i + 1; j < team->ranks; j++)
            if (strcmp(nodes[i], nodes[j]) == 0) {
                snprintf(
                    reason, reason_size,
                    "ranks %d and %d are on %.60s and others lie between; let the launcher number a node's "
                    "ranks one after another",
                    i, j, nodes[i]);
                return false;
            }
        team->nodes++;
        team->ranks_per_node = team->ranks_per_node < 0 || team->ranks_per_node == here ? here : 0;
        here = 0;
    }
    return true;
}

/* Lets in whoever says a rank that is still missing; strangers are sent away. */
static bool let_in(CalTeam *team, int door, const char *node, double timeout_s, char *reason,
                   size_t reason_size)
{
    char(*nodes)[NODE_SIZE] = calloc((size_t)team->ranks, sizeof *nodes);
    const double end_s = now_s() + timeout_s;
    int missing = team->ranks - 1;
    bool ok = nodes != NULL;
    if (ok)
        snprintf(nodes[0], NODE_SIZE, "%s", node);
    while (ok && missing > 0) {
        const double left_s = end_s - now_s();
        Hello hello;
        set_timeout(door, left_s > 0.01 ? left_s : 0.01);
        const int line = left_s > 0 ? accept(door, NULL, NULL) : -1;
        if (line < 0 && now_s() < end_s)
            continue;
        if (line < 0) {
            snprintf(reason, reason_size, "%d of %d ranks did not reach rank 0 at port %d within %.0f s",
                     missing, team->ranks, team->port, timeout_s);
            ok = false;
            break;
        }
        set_timeout(line, 5);
        if (!receive_all(line, &hello, sizeof hello) || hello.magic != MAGIC ||
            hello.ranks != (uint32_t)team->ranks || hello.rank == 0 || hello.rank >= (uint32_t)team->ranks ||
            team->lines[hello.rank] >= 0) {
            close(line);
            continue;
        }
        tune(line);
        set_timeout(line, timeout_s);
        hello.node[NODE_SIZE - 1] = '\0';
        memcpy(nodes[hello.rank], hello.node, NODE_SIZE);
        team->lines[hello.rank] = line;
        missing--;
    }
    ok = ok && count_nodes(team, nodes, reason, reason_size);
    free(nodes);
    return ok;
}

static int connect_once(const CalTeam *team)
{
    struct addrinfo *found = look_up(team, team->address, 0);
    int line = -1;
    for (struct addrinfo *at = found; line < 0 && at != NULL; at = at->ai_next) {
        line = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (line >= 0 && connect(line, at->ai_addr, at->ai_addrlen) != 0) {
            close(line);
            line = -1;
        }
    }
    if (found != NULL)
        freeaddrinfo(found);
    return line;
}

static bool knock(CalTeam *team, const char *node, double timeout_s, char *reason, size_t reason_size)
{
    const double end_s = now_s() + timeout_s;
    const Hello hello = hello_of(team, node);
    int line = -1;
    while ((line = connect_once(team)) < 0 && now_s() < end_s) {
        const struct timespec wait = {0, RETRY_NS};
        nanosleep(&wait, NULL);
    }
    team->lines[0] = line;
    if (line < 0)
        snprintf(reason, reason_size, "rank %d cannot reach rank 0 at %.100s port %d within %.0f s",
                 team->rank, team->address, team->port, timeout_s);
    else
        tune(line);
    const bool ok = line >= 0 && send_all(line, &hello, sizeof hello);
    if (line >= 0 && !ok)
        snprintf(reason, reason_size, "rank 0 at %.100s port %d hung up on rank %d", team->address,
                 team->port, team->rank);
    return ok;
}

bool cal_team_join(CalTeam *team, const char *node, double timeout_s, char *reason, size_t reason_size)
{
    int answer[3] = {0, 0, 0}; /* WELCOME, nodes, ranks of each */
    bool ok;
    team->lines = calloc((size_t)team->ranks, sizeof *team->lines);
    if (team->lines == NULL) {
        snprintf(reason, reason_size, "out of memory for %d ranks", team->ranks);
        return false;
    }
    for (int i = 0; i < team->ranks; i++)
        team->lines[i] = -1;
    if (team->rank == 0) {
        const int door = listen_here(team);
        if (door < 0)
            snprintf(reason, reason_size,
                     "rank 0 cannot listen at port %d: %s; set ORRERY_PORT to a free one", team->port,
                     strerror(errno));
        ok = door >= 0 && let_in(team, door, node, timeout_s, reason, reason_size);
        if (door >= 0)
            close(door);
        answer[0] = WELCOME;
        answer[1] = team->nodes;
        answer[2] = team->ranks_per_node;
    } else {
        ok = knock(team, node, timeout_s, reason, reason_size);
        if (ok)
            set_timeout(team->lines[0], 2 * timeout_s); /* until rank 0 has them all, or has given up */
    }
    if (ok && (!cal_team_share(team, answer, sizeof answer) || answer[0] != WELCOME)) {
        snprintf(reason, reason_size,
                 "rank 0 sent rank %d away: not all ranks came, or they do not fit together", team->rank);
        ok = false;
    }
    if (ok && team->rank > 0)
        set_timeout(team->lines[0], timeout_s);
    team->timeout_s = timeout_s;
    team->nodes = ok ? answer[1] : 1;
    team->ranks_per_node = answer[2];
    if (!ok)
        cal_team_leave(team);
    return ok;
}

void cal_team_leave(CalTeam *team)
{
    for (int i = 0; team->lines != NULL && i < (team->rank == 0 ? team->ranks : 1); i++)
        if (team->lines[i] >= 0 && (team->rank != 0 || i > 0))
            close(team->lines[i]);
    free(team->lines);
    team->lines = NULL;
}

bool cal_team_wait(CalTeam *team)
{
    struct pollfd line = {.fd = team->lines[0], .events = POLLIN};
    int ready;
    while ((ready = poll(&line, 1, -1)) < 0 && errno == EINTR)
        continue;
    return ready > 0;
}

bool cal_team_share(CalTeam *team, void *data, size_t size)
{
    bool ok = true;
    if (team->ranks == 1)
        return true;
    if (team->rank > 0)
        return receive_all(team->lines[0], data, size);
    for (int i = 1; i < team->ranks; i++)
        ok = send_all(team->lines[i], data, size) && ok;
    return ok;
}

bool cal_team_gather(CalTeam *team, const void *own, size_t size, void *ret_all)
{
    bool ok = true;
    if (team->rank > 0)
        return send_all(team->lines[0], own, size);
    memcpy(ret_all, own, size);
    for (int i = 1; i < team->ranks; i++)
        ok = receive_all(team->lines[i], (char *)ret_all + (size_t)i * size, size) && ok;
    return ok;
}
