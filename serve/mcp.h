/* serve/mcp.h - the Model Context Protocol: lines of JSON-RPC 2.0 in, lines out.
 *
 * Requests: initialize, ping, tools/list, tools/call. Notifications get no answer. What is refused is a JSON-RPC error of one
 * sentence. Source: modelcontextprotocol.io, specification 2025-06-18.
 */
#ifndef ORR_SERVE_MCP_H
#define ORR_SERVE_MCP_H

#include "serve/tools.h"

enum { SERVE_MCP_MOST_LINE = 32 << 20 }; /* bytes */

/* Appends the answer to one line, which ends in a line feed; nothing where none is due. */
void serve_mcp_line(const ServeAnswerer *answerer, const char *line, gsize length, GString *out);

/* What a line that is too long gets. */
void serve_mcp_too_long(GString *out);

#endif
