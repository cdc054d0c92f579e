/* serve/server.c - see server.h. Tested: cli/test_serve.py */
#define _DEFAULT_SOURCE
#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOST_CONNECTIONS = 256,
    IDLE_MS = 30000,
    REQUEST_MS = 15000,
    SEND_MS = 15000,
    TICK_MS = 200,
    MOST_HELD = 256 << 20
};

struct ServeServer {
    int listener, port;
    const ServeSite *site;
    const gint *stop;
    gint connections, held; /* held: bytes of requests under way */
};

typedef struct Connection {
    ServeServer *server;
    int socket;
} Connection;

static bool ended(const ServeServer *server)
{
    return g_atomic_int_get(server->stop) != 0;
}

static bool send_all(int to, const char *bytes, gsize length, int patience_ms)
{
    const gint64 until_us = g_get_monotonic_time() + (gint64)patience_ms * 1000;
    for (gsize done = 0; done < length;) {
        struct pollfd end = {.fd = to, .events = POLLOUT};
        const ssize_t wrote = send(to, bytes + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (wrote > 0) {
            done += (gsize)wrote;
            continue;
        }
        if (wrote == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) ||
            g_get_monotonic_time() > until_us)
            return false;
        (void)poll(&end, 1, TICK_MS);
    }
    return true;
}

/* States of a job until it is over, whenever they change and twice a second. */
static void send_events(const Connection *c, guint id)
{
    bool over = false;
    while (!over && !ended(c->server)) {
        g_autoptr(GString) state = g_string_new("data: ");
        if (!serve_jobs_show(c->server->site->jobs, id, false, state, &over))
            return;
        g_string_append(state, "\n\n");
        if (!send_all(c->socket, state->str, state->len, SEND_MS))
            return;
        if (!over)
            serve_jobs_wait(c->server->site->jobs);
    }
}

/* What a client still sends is read for a moment: ending the connection over it would take the answer from him. */
static void drain(const Connection *c)
{
    char piece[16384];
    (void)shutdown(c->socket, SHUT_WR);
    for (int tries = 0; tries < 64; tries++) {
        struct pollfd end = {.fd = c->socket, .events = POLLIN};
        if (poll(&end, 1, TICK_MS) <= 0 || recv(c->socket, piece, sizeof piece, MSG_DONTWAIT) <= 0)
            return;
    }
}

/* Takes one request out of what has come; false: the connection ends. */
static bool answer_one(const Connection *c, GString *bytes, bool *ret_more)
{
    ServeRequest request = {0};
    gsize used = 0;
    const char *why = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    const int status = serve_http_read(bytes->str, bytes->len, &request, &used, &why);
    *ret_more = status == 0;
    if (status == 0)
        return true;
    if (status != 200) {
        serve_site_refuse(status, why, out);
        (void)send_all(c->socket, out->str, out->len, SEND_MS);
        drain(c);
        return false;
    }
    const guint job = serve_site_answer(c->server->site, &request, out);
    const bool goes_on = send_all(c->socket, out->str, out->len, SEND_MS) && !request.close && job == 0;
    if (job != 0)
        send_events(c, job);
    serve_request_clear(&request);
    g_string_erase(bytes, 0, (gssize)used);
    (void)g_atomic_int_add(&c->server->held, -(gint)used);
    return goes_on;
}

/* More bytes; false at the end, or when the client takes too long over a request (`begun`) or between two. */
static bool take(const Connection *c, GString *bytes, gint64 since_us)
{
    char piece[16384];
    const gint64 patience_us = (gint64)(bytes->len > 0 ? REQUEST_MS : IDLE_MS) * 1000;
    while (!ended(c->server) && g_get_monotonic_time() - since_us < patience_us) {
        struct pollfd end = {.fd = c->socket, .events = POLLIN};
        if (poll(&end, 1, TICK_MS) <= 0)
            continue;
        const ssize_t count = recv(c->socket, piece, sizeof piece, MSG_DONTWAIT);
        if (count > 0 && g_atomic_int_add(&c->server->held, (gint)count) > MOST_HELD) {
            (void)g_atomic_int_add(&c->server->held, -(gint)count);
            return false;
        }
        if (count > 0)
            g_string_append_len(bytes, piece, count);
        if (count >= 0 || (errno != EAGAIN && errno != EINTR))
            return count > 0;
    }
    return false;
}

static void *serve_connection(void *data)
{
    Connection *c = data;
    g_autoptr(GString) bytes = g_string_new(NULL);
    gint64 since_us = g_get_monotonic_time();
    bool goes_on = true, more = true;
    while (goes_on && !ended(c->server)) {
        const bool fresh = bytes->len == 0;
        if (more && !take(c, bytes, since_us))
            break;
        if (fresh)
            since_us = g_get_monotonic_time();
        goes_on = answer_one(c, bytes, &more);
        if (!more) {
            since_us = g_get_monotonic_time();
            more = bytes->len == 0;
        }
    }
    (void)shutdown(c->socket, SHUT_RDWR);
    (void)close(c->socket);
    (void)g_atomic_int_add(&c->server->held, -(gint)bytes->len);
    (void)g_atomic_int_add(&c->server->connections, -1);
    g_free(c);
    return NULL;
}

static int listen_at(const char *address, int port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    const int listener = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0), yes = 1;
    if (listener < 0)
        return -1;
    (void)fcntl(listener, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const struct sockaddr *name =
        is_v4 ? (const struct sockaddr *)(const void *)&v4 : (const struct sockaddr *)(const void *)&v6;
    if (bind(listener, name, is_v4 ? sizeof v4 : sizeof v6) == 0 && listen(listener, MOST_CONNECTIONS) == 0)
        return listener;
    const int code = errno;
    (void)close(listener);
    errno = code;
    return -1;
}

ServeServer *serve_server_open(const char *address, int port, GError **error)
{
    const int listener = listen_at(address, port);
    if (listener < 0) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "serve: cannot listen at %s, port %d: %s; give another --port or --listen", address, port,
                 g_strerror(errno));
        return NULL;
    }
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    ServeServer *server = g_new0(ServeServer, 1);
    server->listener = listener;
    if (getsockname(listener, (struct sockaddr *)(void *)&name, &size) == 0)
        server->port = ntohs(name.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&name)->sin_port
                                                       : ((struct sockaddr_in6 *)(void *)&name)->sin6_port);
    return server;
}

int serve_server_port(const ServeServer *server)
{
    return server->port;
}

static void turn_away(int client)
{
    g_autoptr(GString) out = g_string_new(NULL);
    serve_site_refuse(503, "too many connections; ask again in a few seconds", out);
    (void)send_all(client, out->str, out->len, 0);
    (void)close(client);
}

static void welcome(ServeServer *server, int client)
{
    const int yes = 1;
    (void)fcntl(client, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (g_atomic_int_get(&server->connections) >= MOST_CONNECTIONS) {
        turn_away(client);
        return;
    }
    Connection *c = g_new(Connection, 1);
    *c = (Connection){server, client};
    (void)g_atomic_int_add(&server->connections, 1);
    GThread *thread = g_thread_try_new("client", serve_connection, c, NULL);
    if (thread != NULL) {
        g_thread_unref(thread);
        return;
    }
    (void)g_atomic_int_add(&server->connections, -1);
    g_free(c);
    turn_away(client);
}

void serve_server_run(ServeServer *server, const ServeSite *site, const gint *stop)
{
    server->site = site;
    server->stop = stop;
    while (!ended(server)) {
        struct pollfd end = {.fd = server->listener, .events = POLLIN};
        if (poll(&end, 1, TICK_MS) <= 0)
            continue;
        const int client = accept(server->listener, NULL, NULL);
        if (client >= 0)
            welcome(server, client);
        else if (errno == EMFILE || errno == ENFILE)
            g_usleep(TICK_MS * 1000);
    }
    while (g_atomic_int_get(&server->connections) > 0)
        g_usleep(TICK_MS * 100);
}

void serve_server_free(ServeServer *server)
{
    (void)close(server->listener);
    g_free(server);
}
