/* study/program_read.c - reads the text of a program: a line is a word and its key=value pairs. */
#include "study/program_reader.h"

#include <inttypes.h>
#include <string.h>

#include "report/parts.h"

/* --- kinds of lines --- */

static bool room(ProgramReader *r, const char *line, const GArray *rows, guint most)
{
    return rows->len < most || program_reader_fail(r, "a program has at most %u lines \"%s\"", most, line);
}

typedef struct Instances {
    int64_t count;
    ProgramMap map;
} Instances;

static bool mapped(ProgramReader *r, const Instances *instances)
{
    if ((instances->map.of_rank != NULL) != (instances->count > 0))
        return program_reader_fail(r, "instances= and map= stand together or not at all");
    const int32_t ranks = instances->count > 0 ? r->program->classes * r->program->replicas : 0;
    for (int32_t i = 0; i < ranks; i++)
        if (instances->map.of_rank[i] >= instances->count)
            return program_reader_fail(r, "map: rank %d is in instance %d, and there are %" PRId64, i,
                                       instances->map.of_rank[i], instances->count);
    return true;
}

#define INSTANCES(of)                                                                                        \
    {.key = "instances", .low = 1, .high = MOST_INSTANCES, .number = &(of).count},                           \
    {                                                                                                        \
        .key = "map", .read = program_read_map, .to = &(of).map                                              \
    }

#define NO_INSTANCES                                                                                         \
    {                                                                                                        \
        .map = {.low = -1, .high = MOST_INSTANCES }                                                          \
    }

static bool line_ranks(ProgramReader *r)
{
    int64_t classes = 0, replicas = 0, grain = 0, skewed = 0, own = 0;
    ProgramMap speed = {.low = 1, .high = MOST_SPEED};
    SimProgram *program = r->program;
    if (program->classes > 0)
        return program_reader_fail(r, "\"ranks\" stands twice");
    /* The numbers first: a map is as long as they say. */
    const ProgramField numbers[] = {
        {.key = "classes", .low = 1, .high = PROGRAM_TEXT_MOST_RANKS, .number = &classes, .needed = true},
        {.key = "replicas", .low = 1, .high = PROGRAM_TEXT_MOST_RANKS, .number = &replicas, .needed = true}};
    if (!program_reader_first(r, "ranks", numbers, 2))
        return false;
    if (classes * replicas > PROGRAM_TEXT_MOST_RANKS)
        return program_reader_fail(r, "%" PRId64 " classes x %" PRId64 " replicas are more than %d ranks",
                                   classes, replicas, PROGRAM_TEXT_MOST_RANKS);
    program->classes = (int)classes;
    program->replicas = (int)replicas;
    const ProgramField fields[] = {{.key = "own", .low = 1, .high = classes, .number = &own},
                                   {.key = "rate_grain", .high = SIM_FULL_RATE, .number = &grain},
                                   {.key = "skewed", .high = 1, .number = &skewed},
                                   {.key = "speed", .read = program_read_map, .to = &speed}};
    const bool ok = program_reader_fields(r, "ranks", fields, G_N_ELEMENTS(fields));
    r->own_classes = (int)(own > 0 ? own : classes);
    program->rate_grain = (int32_t)grain;
    program->skewed = skewed != 0;
    program->rank_speed = speed.of_rank;
    return ok;
}

static bool line_tier(ProgramReader *r)
{
    SimTier tier = {0};
    Instances instances = NO_INSTANCES;
    const ProgramField fields[] = {{.key = "capacity", .high = MOST_SENT, .number = &tier.capacity_bytes},
                                   INSTANCES(instances)};
    if (!room(r, "tier", r->tiers, SIM_MAX_TIERS) || !program_reader_name(r, &tier.name) ||
        !program_reader_fields(r, "tier", fields, G_N_ELEMENTS(fields)) || !mapped(r, &instances))
        return false;
    tier.instances = (int32_t)instances.count;
    tier.instance_of_rank = instances.map.of_rank;
    g_array_append_val(r->tiers, tier);
    return true;
}

static bool line_memory(ProgramReader *r)
{
    SimMemKind kind = {0};
    int64_t tier = 0;
    const ProgramField fields[] = {{.key = "tier", .high = (int64_t)r->tiers->len - 1, .number = &tier}};
    if (!room(r, "memory", r->kinds, SIM_MAX_MEMS) || !program_reader_name(r, &kind.name) ||
        !program_reader_fields(r, "memory", fields, 1))
        return false;
    if (r->tiers->len == 0)
        return program_reader_fail(r, "a kind of memory lies in a tier: give \"tier\" lines before");
    kind.tier = (int)tier;
    g_array_append_val(r->kinds, kind);
    return true;
}

static bool line_change(ProgramReader *r)
{
    SimMemDelta change = {{0}, {0}};
    const ProgramField fields[] = {{.key = "start", .read = program_read_bytes, .to = change.start_bytes},
                                   {.key = "end", .read = program_read_bytes, .to = change.end_bytes}};
    if (!program_reader_fields(r, "change", fields, G_N_ELEMENTS(fields)))
        return false;
    g_array_append_val(r->changes, change);
    return true;
}

static bool line_stream(ProgramReader *r)
{
    SimStreamRow stream = {0};
    const ProgramField fields[] = {
        {.key = "runs", .read = program_read_runs, .to = &stream.kind, .needed = true}};
    if (!room(r, "stream", r->streams, SIM_MAX_STREAMS) || !program_reader_name(r, &stream.name) ||
        !program_reader_fields(r, "stream", fields, 1))
        return false;
    g_array_append_val(r->streams, stream);
    return true;
}

static bool line_resource(ProgramReader *r)
{
    SimResource resource = {0};
    Instances instances = NO_INSTANCES;
    const ProgramField fields[] = {
        {.key = "capacity", .high = SIM_MAX_CAPACITY, .number = &resource.capacity}, INSTANCES(instances)};
    if (!room(r, "resource", r->resources, INT16_MAX) || !program_reader_name(r, &resource.name) ||
        !program_reader_fields(r, "resource", fields, G_N_ELEMENTS(fields)) || !mapped(r, &instances))
        return false;
    resource.instances = (int32_t)instances.count;
    resource.instance_of_rank = instances.map.of_rank;
    g_array_append_val(r->resources, resource);
    return true;
}

static bool line_event(ProgramReader *r)
{
    int64_t resource = 0, instance = -1, time_ps = 0, capacity = 0;
    const ProgramField fields[] = {
        {.key = "at", .high = INT64_MAX / 2, .number = &time_ps, .needed = true},
        {.key = "resource", .high = (int64_t)r->resources->len - 1, .number = &resource, .needed = true},
        {.key = "instance", .high = MOST_INSTANCES, .number = &instance},
        {.key = "capacity", .high = SIM_MAX_CAPACITY, .number = &capacity}};
    if (!program_reader_fields(r, "event", fields, G_N_ELEMENTS(fields)))
        return false;
    const SimCapacityEvent event = {.time_ps = time_ps,
                                    .resource = (int16_t)resource,
                                    .instance = (int32_t)instance,
                                    .capacity = capacity};
    g_array_append_val(r->events, event);
    return true;
}

static bool line_group(ProgramReader *r)
{
    Instances instances = NO_INSTANCES;
    const ProgramField fields[] = {INSTANCES(instances)};
    if (r->program->group_count == SIM_MAX_GROUPS)
        return program_reader_fail(r, "a program has at most %d lines \"group\"", SIM_MAX_GROUPS);
    if (!program_reader_fields(r, "group", fields, G_N_ELEMENTS(fields)) || !mapped(r, &instances))
        return false;
    r->program->groups[r->program->group_count++] =
        (SimGroups){.instance_of_rank = instances.map.of_rank, .instances = (int32_t)instances.count};
    return true;
}

static bool line_work(ProgramReader *r)
{
    enum { OTHERS = 4 };
    SimWork work = {0};
    ProgramField fields[SIM_PART_COUNT + OTHERS] = {
        [SIM_PART_COUNT] = {.key = "up", .high = MOST_SENT, .number = &work.scale_up_bytes},
        {.key = "out", .high = MOST_SENT, .number = &work.scale_out_bytes},
        {.key = "second", .high = MOST_SENT, .number = &work.second_bytes},
        {.key = "shares", .read = program_read_shares, .to = &work}};
    for (int part = 0; part < SIM_PART_COUNT; part++)
        fields[part] = (ProgramField){
            .key = report_part_name((SimPart)part), .high = INT64_MAX / 2, .number = &work.part_ps[part]};
    if (!program_reader_fields(r, "work", fields, G_N_ELEMENTS(fields)))
        return false;
    g_array_append_val(r->works, work);
    return true;
}

static int tag_of(const ProgramReader *r, gsize length)
{
    for (int tag = 0; tag < SIM_TAG_COUNT; tag++) {
        g_autofree char *word = g_strdelimit(g_strdup(sim_tag_label((SimTag)tag)), " ", '-');
        if (program_reader_is(r, length, word))
            return tag;
    }
    return -1;
}

static bool read_op(ProgramReader *r, SimOpKind kind)
{
    const char *line = kind == SIM_OP ? "op" : "collective";
    int64_t work = 0, change = -1, stage = -1, group = 0;
    const ProgramField fields[] = {
        {.key = "work", .high = (int64_t)r->works->len - 1, .number = &work, .needed = true},
        {.key = "change", .high = (int64_t)r->changes->len - 1, .number = &change},
        {.key = "stage", .high = INT32_MAX, .number = &stage},
        {.key = "group",
         .high = r->program->group_count - 1,
         .number = &group,
         .needed = kind == SIM_COLLECTIVE}};
    program_reader_at_end(r);
    const gsize length = program_reader_word(r);
    const int tag = tag_of(r, length);
    if (tag < 0) {
        g_autofree char *word = program_reader_shown(r);
        return program_reader_fail(
            r, "\"%s\" is nothing that an op does: give \"forward\", \"send-activation\" ...", word);
    }
    r->at += length;
    if (!program_reader_fields(r, line, fields, (int)G_N_ELEMENTS(fields) - (kind == SIM_OP ? 1 : 0)))
        return false;
    const SimOp op = {.kind = (uint8_t)kind,
                      .tag = (uint8_t)tag,
                      .group = (uint8_t)group,
                      .work = (int32_t)work,
                      .mem = (int32_t)change,
                      .stage = (int32_t)stage};
    g_array_append_val(r->ops, op);
    return true;
}

static bool line_op(ProgramReader *r)
{
    return read_op(r, SIM_OP);
}

static bool line_collective(ProgramReader *r)
{
    return read_op(r, SIM_COLLECTIVE);
}

/* Instructions read since the last "on" or "class" become the stream's list. */
static bool end_stream(ProgramReader *r)
{
    const guint count = r->instrs->len;
    if (r->stream >= 0) {
        SimClass *cls = &g_array_index(r->classes, SimClass, r->classes->len - 1);
        SimInstr *instrs = ORR_ARENA_NEW(r->arena, SimInstr, count);
        if (cls->streams[r->stream].count > 0)
            return program_reader_fail(r, "stream %d of this class stands twice", r->stream);
        if (count > 0)
            memcpy(instrs, r->instrs->data, count * sizeof *instrs);
        cls->streams[r->stream] = (SimList){.instrs = instrs, .count = count};
    }
    g_array_set_size(r->instrs, 0);
    r->stream = -1;
    return true;
}

static bool line_class(ProgramReader *r)
{
    SimClass cls = {0};
    const ProgramField fields[] = {{.key = "bytes", .read = program_read_bytes, .to = cls.static_bytes}};
    if (!end_stream(r) || !program_reader_fields(r, "class", fields, 1))
        return false;
    if ((int)r->classes->len == r->program->classes)
        return program_reader_fail(r, "a class too many: \"ranks\" says classes=%d", r->program->classes);
    g_array_append_val(r->classes, cls);
    return true;
}

static bool line_on(ProgramReader *r)
{
    int64_t stream = 0;
    if (r->classes->len == 0)
        return program_reader_fail(r, "\"on\" names a stream of a class: give a line \"class\" before");
    if (program_reader_at_end(r) || !end_stream(r) ||
        !program_reader_number(r, "on", 0, (int64_t)r->streams->len - 1, &stream))
        return *r->error != NULL ? false : program_reader_fail(r, "\"on\" needs the number of a stream");
    r->stream = (int)stream;
    return program_reader_fields(r, "on", NULL, 0);
}

/* "17 batch=3 after=0:5", or "wait after=0:5". */
static bool line_instr(ProgramReader *r, bool waits)
{
    int64_t op = SIM_ONLY_WAITS, batch = -1;
    SimInstr instr = {0};
    const ProgramField fields[] = {{.key = "batch", .high = INT32_MAX, .number = &batch},
                                   {.key = "after", .read = program_read_after, .to = &instr}};
    if (r->stream < 0)
        return program_reader_fail(r, "an instruction belongs to a stream: give a line \"on\" before");
    if ((!waits && !program_reader_number(r, "op", 0, (int64_t)r->ops->len - 1, &op)) ||
        !program_reader_fields(r, waits ? "wait" : "instruction", fields, G_N_ELEMENTS(fields)))
        return false;
    instr.op = (int32_t)op;
    instr.microbatch = (int32_t)batch;
    if (r->instrs->len == INT32_MAX / 2)
        return program_reader_fail(r, "a stream has at most %d instructions", INT32_MAX / 2);
    g_array_append_val(r->instrs, instr);
    return true;
}

static bool line_wait(ProgramReader *r)
{
    return line_instr(r, true);
}

/* --- the text --- */

static const struct {
    const char *word;
    bool (*read)(ProgramReader *r);
} kinds[] = {{"ranks", line_ranks},
             {"tier", line_tier},
             {"memory", line_memory},
             {"change", line_change},
             {"stream", line_stream},
             {"resource", line_resource},
             {"event", line_event},
             {"group", line_group},
             {"work", line_work},
             {"op", line_op},
             {"collective", line_collective},
             {"class", line_class},
             {"on", line_on},
             {"wait", line_wait}};

static bool read_line(ProgramReader *r)
{
    if (program_reader_at_end(r) || *r->at == '#')
        return true;
    const gsize length = program_reader_word(r);
    if (g_ascii_isdigit(*r->at))
        return line_instr(r, false);
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!program_reader_is(r, length, kinds[i].word))
            continue;
        if (i > 0 && r->program->classes == 0)
            return program_reader_fail(r, "\"ranks\" has to be the line after \"orrery-program 1\"");
        r->at += length;
        return kinds[i].read(r);
    }
    g_autofree char *word = program_reader_shown(r);
    return program_reader_fail(r, "\"%s\" begins no line of a program: see docs/PROGRAM.md", word);
}

static bool read_lines(ProgramReader *r, const char *text, gsize length)
{
    static const char head[] = "orrery-program 1";
    const char *const end = text + length;
    for (const char *at = text; at < end; r->line++) {
        const char *stop = memchr(at, '\n', (gsize)(end - at));
        r->at = at;
        r->end = stop != NULL ? stop : end;
        at = r->end + 1;
        if (r->end > r->at && r->end[-1] == '\r')
            r->end--;
        if (r->line == 1 &&
            !((gsize)(r->end - r->at) == strlen(head) && memcmp(r->at, head, strlen(head)) == 0))
            return program_reader_fail(r, "a program begins with a line \"%s\"", head);
        if (r->line > 1 && !read_line(r))
            return false;
    }
    if (r->line == 1)
        return program_reader_fail(r, "the file is empty");
    if (r->program->classes != (int)r->classes->len || r->classes->len == 0)
        return program_reader_fail(r, "the text ends after %u classes; \"ranks\" says classes=%d",
                                   r->classes->len, r->program->classes);
    return end_stream(r);
}

/* The rows of `from` in the arena; its length in *ret_count. */
static void *kept(const ProgramReader *r, const GArray *from)
{
    const gsize size = from->len * g_array_get_element_size((GArray *)from);
    void *rows = orr_arena_alloc(r->arena, size);
    if (size > 0)
        memcpy(rows, from->data, size);
    return rows;
}

static void keep_tables(ProgramReader *r)
{
    SimProgram *program = r->program;
    program->tiers = kept(r, r->tiers);
    program->tier_count = (int)r->tiers->len;
    program->mem_kinds = kept(r, r->kinds);
    program->mem_kind_count = (int)r->kinds->len;
    program->mems = kept(r, r->changes);
    program->mem_count = r->changes->len;
    program->streams = kept(r, r->streams);
    program->stream_count = (int)r->streams->len;
    program->resources = kept(r, r->resources);
    program->resource_count = (int)r->resources->len;
    program->capacity_events = kept(r, r->events);
    program->capacity_event_count = r->events->len;
    program->works = kept(r, r->works);
    program->work_count = r->works->len;
    program->ops = kept(r, r->ops);
    program->op_count = (int32_t)r->ops->len;
    program->class_list = kept(r, r->classes);
}

bool program_text_read(const char *text, gsize length, const char *name, OrrArena *arena,
                       ProgramText *ret_text, GError **error)
{
    SimProgram program = {0};
    GError *failed = NULL;
    ProgramReader r = {
        .name = name, .line = 1, .arena = arena, .error = &failed, .program = &program, .stream = -1};
    const struct {
        GArray **rows;
        gsize size;
    } tables[] = {{&r.tiers, sizeof(SimTier)},         {&r.kinds, sizeof(SimMemKind)},
                  {&r.changes, sizeof(SimMemDelta)},   {&r.streams, sizeof(SimStreamRow)},
                  {&r.resources, sizeof(SimResource)}, {&r.events, sizeof(SimCapacityEvent)},
                  {&r.works, sizeof(SimWork)},         {&r.ops, sizeof(SimOp)},
                  {&r.classes, sizeof(SimClass)},      {&r.instrs, sizeof(SimInstr)}};
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
        *tables[i].rows = g_array_new(FALSE, TRUE, (guint)tables[i].size);
    bool ok = read_lines(&r, text, length);
    if (ok) {
        keep_tables(&r);
        ok = program_text_check(&program, &failed);
        if (!ok)
            g_prefix_error(&failed, "%s: ", name);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
        g_array_unref(*tables[i].rows);
    if (ok)
        *ret_text = (ProgramText){.program = program, .own_classes = r.own_classes};
    else
        g_propagate_error(error, failed);
    return ok;
}
