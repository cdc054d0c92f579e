/* serve/server.h - connections: a thread each, up to a number; limits of time; an end when it is asked for. */
#ifndef ORR_SERVE_SERVER_H
#define ORR_SERVE_SERVER_H

#include "serve/site.h"

typedef struct ServeServer ServeServer;

/* Listens at `address` (an IPv4 or IPv6 one); port 0: any that is free. */
ServeServer *serve_server_open(const char *address, int port, GError **error);
int serve_server_port(const ServeServer *server);
/* Answers until *stop is other than 0. */
void serve_server_run(ServeServer *server, const ServeSite *site, const gint *stop);
void serve_server_free(ServeServer *server);

#endif
