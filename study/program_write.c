/* study/program_write.c - a program of the engine as text: tables first, then the streams of each class. */
#include "study/program_text.h"

#include <inttypes.h>
#include <string.h>

#include "report/parts.h"

typedef struct Writer {
    const SimProgram *program;
    bool (*put)(const char *text, gsize length, void *data);
    void *data;
    GString *line;
} Writer;

const char *program_text_stream_kind(int kind)
{
    static const char *const words[] = {
        [SIM_RUNS_KERNELS] = "kernels",   [SIM_RUNS_COLLECTIVES] = "collectives",
        [SIM_RUNS_MESSAGES] = "messages", [SIM_RUNS_COPIES] = "copies",
        [SIM_RUNS_HOST] = "host",         [SIM_RUNS_STORAGE] = "storage"};
    return kind < (int)G_N_ELEMENTS(words) ? words[kind] : NULL;
}

static void end_line(Writer *w)
{
    g_string_append_c(w->line, '\n');
    w->put(w->line->str, w->line->len, w->data);
    g_string_truncate(w->line, 0);
}

static void begin_named(Writer *w, const char *kind, const char *name)
{
    g_autofree char *escaped = g_strescape(name, NULL);
    g_string_append_printf(w->line, "%s \"%s\"", kind, escaped);
}

/* " key=value" but for 0, which is what is not said. */
static void add(Writer *w, const char *key, int64_t value)
{
    if (value != 0)
        g_string_append_printf(w->line, " %s=%" PRId64, key, value);
}

/* A number of each rank, as "0*8,1*8". */
static void add_map(Writer *w, const char *key, const int32_t *map)
{
    const int32_t ranks = w->program->classes * w->program->replicas;
    for (int32_t r = 0, next; r < ranks; r = next) {
        for (next = r + 1; next < ranks && map[next] == map[r];)
            next++;
        if (r == 0)
            g_string_append_printf(w->line, " %s=", key);
        g_string_append_printf(w->line, r > 0 ? ",%d" : "%d", map[r]);
        if (next > r + 1)
            g_string_append_printf(w->line, "*%d", next - r);
    }
}

static void add_instances(Writer *w, const int32_t *instance_of_rank, int32_t instances)
{
    if (instance_of_rank == NULL)
        return;
    g_string_append_printf(w->line, " instances=%d", instances);
    add_map(w, "map", instance_of_rank);
}

/* Bytes of each kind of memory that has some: "0:123,2:-5". */
static void add_bytes(Writer *w, const char *key, const int64_t *bytes, int kinds)
{
    bool any = false;
    for (int kind = 0; kind < kinds; kind++) {
        if (bytes[kind] == 0)
            continue;
        if (!any)
            g_string_append_printf(w->line, " %s=", key);
        g_string_append_printf(w->line, any ? ",%d:%" PRId64 : "%d:%" PRId64, kind, bytes[kind]);
        any = true;
    }
}

static void write_head(Writer *w, int own_classes, const char *title)
{
    const SimProgram *program = w->program;
    g_string_append(w->line, "orrery-program 1");
    end_line(w);
    g_string_append_printf(w->line, "# %s", title);
    g_strdelimit(w->line->str, "\n", ' ');
    end_line(w);
    g_string_append_printf(w->line, "ranks classes=%d replicas=%d", program->classes, program->replicas);
    if (own_classes < program->classes)
        add(w, "own", own_classes);
    add(w, "rate_grain", program->rate_grain);
    add(w, "skewed", program->skewed);
    if (program->rank_speed != NULL)
        add_map(w, "speed", program->rank_speed);
    end_line(w);
}

static void write_memory(Writer *w)
{
    int tiers = 0, kinds = 0;
    const SimTier *tier = sim_program_tiers(w->program, &tiers);
    const SimMemKind *kind = sim_program_mem_kinds(w->program, &kinds);
    for (int i = 0; i < tiers; i++) {
        begin_named(w, "tier", tier[i].name);
        add(w, "capacity", tier[i].capacity_bytes);
        add_instances(w, tier[i].instance_of_rank, tier[i].instances);
        end_line(w);
    }
    for (int i = 0; i < kinds; i++) {
        begin_named(w, "memory", kind[i].name);
        add(w, "tier", kind[i].tier);
        end_line(w);
    }
    for (int64_t i = 0; i < w->program->mem_count; i++) {
        g_string_append(w->line, "change");
        add_bytes(w, "start", w->program->mems[i].start_bytes, kinds);
        add_bytes(w, "end", w->program->mems[i].end_bytes, kinds);
        end_line(w);
    }
}

static void write_resources(Writer *w)
{
    const SimProgram *program = w->program;
    int streams = 0;
    const SimStreamRow *stream = sim_program_streams(program, &streams);
    for (int i = 0; i < streams; i++) {
        begin_named(w, "stream", stream[i].name);
        g_string_append_printf(w->line, " runs=%s", program_text_stream_kind((int)stream[i].kind));
        end_line(w);
    }
    for (int i = 0; i < program->resource_count; i++) {
        const SimResource *resource = &program->resources[i];
        begin_named(w, "resource", resource->name);
        add(w, "capacity", resource->capacity);
        add_instances(w, resource->instance_of_rank, resource->instances);
        end_line(w);
    }
    for (int64_t i = 0; i < program->capacity_event_count; i++) {
        const SimCapacityEvent *event = &program->capacity_events[i];
        g_string_append_printf(w->line, "event at=%" PRId64 " resource=%d", event->time_ps, event->resource);
        if (event->instance >= 0)
            g_string_append_printf(w->line, " instance=%d", event->instance);
        add(w, "capacity", event->capacity);
        end_line(w);
    }
    for (int i = 0; i < program->group_count; i++) {
        g_string_append(w->line, "group");
        add_instances(w, program->groups[i].instance_of_rank, program->groups[i].instances);
        end_line(w);
    }
}

static void write_work(Writer *w, const SimWork *work)
{
    const SimShare *share;
    g_string_append(w->line, "work");
    for (int part = 0; part < SIM_PART_COUNT; part++)
        add(w, report_part_name((SimPart)part), work->part_ps[part]);
    add(w, "up", work->scale_up_bytes);
    add(w, "out", work->scale_out_bytes);
    add(w, "second", work->second_bytes);
    for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
        g_string_append_printf(w->line, "%s%s:%d:%" PRId64, k == 0 ? " shares=" : ",",
                               share->mode == SIM_SHARE_FAIR ? "fair" : "held", share->resource,
                               share->amount);
        if (share->instance > 0)
            g_string_append_printf(w->line, "@%d", share->instance - 1);
    }
    end_line(w);
}

static void write_op(Writer *w, const SimOp *op)
{
    g_autofree char *tag = g_strdelimit(g_strdup(sim_tag_label((SimTag)op->tag)), " ", '-');
    g_string_append_printf(w->line, "%s %s work=%d", op->kind == SIM_OP ? "op" : "collective", tag, op->work);
    if (op->kind == SIM_COLLECTIVE)
        g_string_append_printf(w->line, " group=%d", op->group);
    if (op->mem >= 0)
        g_string_append_printf(w->line, " change=%d", op->mem);
    if (op->stage >= 0)
        g_string_append_printf(w->line, " stage=%d", op->stage);
    end_line(w);
}

/* "17 batch=3 after=2/0:5": op 17 for micro-batch 3 behind 5 instructions of stream 0 of class 2. */
static void write_instr(Writer *w, const SimInstr *instr)
{
    if (instr->op == SIM_ONLY_WAITS)
        g_string_append(w->line, "wait");
    else
        g_string_append_printf(w->line, "%d", instr->op);
    if (instr->microbatch >= 0)
        g_string_append_printf(w->line, " batch=%d", instr->microbatch);
    if (instr->wait_count > 0) {
        const int cls = sim_wait_class(instr, -1);
        g_string_append(w->line, " after=");
        if (cls >= 0)
            g_string_append_printf(w->line, "%d/", cls);
        g_string_append_printf(w->line, "%d:%d", sim_wait_stream(instr), instr->wait_count);
    }
    end_line(w);
}

static void write_class(Writer *w, const SimClass *cls)
{
    int streams = 0, kinds = 0;
    sim_program_streams(w->program, &streams);
    sim_program_mem_kinds(w->program, &kinds);
    g_string_append(w->line, "class");
    add_bytes(w, "bytes", cls->static_bytes, kinds);
    end_line(w);
    for (int s = 0; s < streams; s++) {
        const SimList *list = &cls->streams[s];
        if (list->count == 0)
            continue;
        g_string_append_printf(w->line, "on %d", s);
        end_line(w);
        for (int64_t i = 0; i < list->count; i++)
            write_instr(w, &list->instrs[i]);
    }
}

ProgramText program_text_of(const Report *report)
{
    ProgramText text = {.program = report->program, .own_classes = report->program.classes};
    if (report->network.on)
        text.program.classes = report->network.classes;
    return text;
}

void program_text_write(const ProgramText *text, const char *title,
                        bool (*put)(const char *text, gsize length, void *data), void *data)
{
    const SimProgram *program = &text->program;
    g_autoptr(GString) line = g_string_new(NULL);
    Writer w = {.program = program, .put = put, .data = data, .line = line};
    write_head(&w, text->own_classes, title);
    write_memory(&w);
    write_resources(&w);
    for (int64_t i = 0; i < program->work_count; i++)
        write_work(&w, &program->works[i]);
    for (int32_t i = 0; i < program->op_count; i++)
        write_op(&w, &program->ops[i]);
    for (int c = 0; c < program->classes; c++)
        write_class(&w, &program->class_list[c]);
}
