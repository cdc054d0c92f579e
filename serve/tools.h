/* serve/tools.h - the questions that may be asked from outside, as a table: what each takes, and the command that answers it. */
#ifndef ORR_SERVE_TOOLS_H
#define ORR_SERVE_TOOLS_H

#include "base/json.h"
#include "serve/child.h"
#include "serve/store.h"

typedef enum {
    SERVE_TAKES_SCENARIO, /* an object, its text, the name of an example, or a path */
    SERVE_TAKES_TEXT,
    SERVE_TAKES_NUMBER,
    SERVE_TAKES_SWITCH,
    SERVE_TAKES_SETS, /* {"parallel.tensor": 4} */
    SERVE_TAKES_LIST, /* of texts and numbers, or one text */
    SERVE_TAKES_VARY, /* {"parallel.tensor": [1, 2, 4]}, or "1..4" in place of a list */
    SERVE_TAKES_BODY, /* the text of a file */
} ServeTakes;

typedef struct ServeArgument {
    const char *name;
    ServeTakes takes;
    const char *flag; /* "--top"; NULL: a word of its own */
    bool required;
    const char *help;
    double low, high; /* of a number */
} ServeArgument;

/* Which numbers of an answer are what: the longest path that begins a number's own decides. */
typedef struct ServeLabel {
    const char *path;  /* "training.effective"; "": all others */
    const char *label; /* measured, predicted, assumed or given */
    const char *source;
} ServeLabel;

enum { SERVE_MOST_ARGUMENTS = 14, SERVE_MOST_LABELS = 8 };

typedef struct ServeTool {
    const char *name, *title, *help;
    const char *const *words; /* of the command line before its arguments, NULL-terminated */
    double seconds;           /* what it may take, besides an argument max_seconds */
    bool is_json;             /* its answer is JSON */
    bool tells;               /* takes --progress */
    bool keeps;               /* its answers are worth keeping */
    ServeArgument arguments[SERVE_MOST_ARGUMENTS]; /* ends at a NULL name */
    ServeLabel labels[SERVE_MOST_LABELS];          /* ends at a NULL path */
} ServeTool;

const ServeTool *serve_tools(int *ret_count);
/* NULL with an error that names the nearest. */
const ServeTool *serve_tool_find(const char *name, GError **error);

/* A command line, and the folder of files that it reads. */
typedef struct ServeQuestion {
    const ServeTool *tool;
    GPtrArray *words; /* char*, owned, without the program and a NULL at its end */
    char *folder;     /* NULL: no files */
    char *key;        /* the same for the same arguments of the same tool */
    char *asked;      /* the arguments, JSON */
    double seconds;
} ServeQuestion;

/* Arguments (an object, or NULL: none) to a command line. */
bool serve_question_read(const ServeTool *tool, const OrrJson *arguments, ServeQuestion *ret_question,
                         GError **error);
/* The folder's name out of a text: it is nobody's business. */
void serve_question_forget(const ServeQuestion *question, GString *text);
void serve_question_clear(ServeQuestion *question);

/* The schema of a tool's arguments, as member `key`. */
void serve_tool_schema(const ServeTool *tool, const char *key, OrrJsonWriter *w);

/* Who answers a question. The command's refusal is an error of ORR_ERROR_INPUT; its answer goes to `out` and its notes to `said`. */
typedef struct ServeAnswerer {
    bool (*ask)(const ServeQuestion *question, GString *out, GString *said, void *data, GError **error);
    void *data;
} ServeAnswerer;

/* Who may want no more of an answer, and how little its process takes from others. */
typedef struct ServeWatch {
    ServeGoOn go_on;
    void *data;
    int nice;
    ServeStore *store; /* where answers are kept, and looked for first; NULL: nowhere */
} ServeWatch;

enum { SERVE_JOB_NICE = 19 }; /* what is typed on the page goes before */

bool serve_ask_watched(const ServeQuestion *question, GString *out, GString *said, const char *program,
                       const ServeWatch *watch, GError **error);

/* The answerer that starts `program` for each question; `data` of it. */
bool serve_ask_program(const ServeQuestion *question, GString *out, GString *said, void *program,
                       GError **error);

#endif
