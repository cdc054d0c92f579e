/* cli/cmd_mcp.c - orrery mcp: answers an assistant's questions over standard input and output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/self.h"
#include "serve/mcp.h"

/* The next line; false at the end. A line that is too long is read to its end and left out. */
static bool read_line(FILE *in, GString *line, bool *ret_too_long)
{
    char piece[65536];
    g_string_truncate(line, 0);
    *ret_too_long = false;
    while (fgets(piece, sizeof piece, in) != NULL) {
        if (line->len + sizeof piece > SERVE_MCP_MOST_LINE) {
            *ret_too_long = true;
            g_string_truncate(line, 0);
        }
        g_string_append(line, piece);
        if (g_str_has_suffix(piece, "\n"))
            return true;
    }
    return line->len > 0 || *ret_too_long;
}

static bool say(const GString *text, GError **error)
{
    if (fwrite(text->str, 1, text->len, stdout) == text->len && fflush(stdout) == 0)
        return true;
    if (errno == EPIPE)
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "the reader of its output has gone");
    else
        orr_fail(error, ORR_ERROR_IO, "standard output: %s", g_strerror(errno));
    return false;
}

static bool run(const CliArgs *args, GError **error)
{
    (void)args;
    g_autofree char *program = cli_self(error);
    if (program == NULL)
        return false;
    const ServeAnswerer answerer = {serve_ask_program, program};
    g_autoptr(GString) line = g_string_new(NULL), out = g_string_new(NULL);
    bool ok = true, too_long = false;
    while (ok && read_line(stdin, line, &too_long)) {
        g_string_truncate(out, 0);
        if (too_long)
            serve_mcp_too_long(out);
        else
            serve_mcp_line(&answerer, line->str, line->len, out);
        ok = say(out, error);
    }
    return ok;
}

const CliCommand cli_command_mcp = {
    .name = "mcp",
    .usage = "",
    .summary = "answer an assistant over standard input and output",
    .help = "Speaks the Model Context Protocol, a line of JSON-RPC 2.0 a message, so that an assistant "
            "can ask. Its tools are run, search, plan, explain, compare, collective, import, list and "
            "help. Every number of an answer says whether it is measured, predicted, assumed or given, "
            "with interval and source. Each question runs in a process of its own with limits of time "
            "and memory. docs/howto/assistant.md says how to set it up.\n\n"
            "  orrery mcp\n"
            "  claude mcp add orrery -- orrery mcp\n",
    .max_words = 0,
    .args_size = sizeof(CliArgs),
    .run = run,
};
