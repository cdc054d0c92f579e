/* report/snapshot.c - the memory of a step as allocations and frees, in the shape of PyTorch's memory snapshots.
 *
 * {"orrery": {...}, "segments": [...], "device_traces": [[{"action", "addr", "size", "stream", "time_us", "frames"}, ...], ...]}:
 * a device a simulated rank, keys and actions as torch.cuda.memory._snapshot() has them, in JSON in the place of a pickle.
 * A block is what an op takes of one kind of memory. What a later op gives back is matched to blocks of its stage and
 * micro-batch first, then to the newest of its stage, then to the oldest; a block that goes in parts is one block a part.
 * "oom" is where the rank would first have exceeded the GPU with what the allocator and the context add.
 *
 * Addresses are never used twice: fragmentation is not simulated. At one instant frees come before allocations.
 * Source: [PyTorch] torch/cuda/memory.py, torch/csrc/cuda/memory_snapshot.cpp    Tested: unit/report/test_snapshot.c
 */
#include <string.h>

#include "report/parts.h"
#include "report/spans.h"

#define PS_PER_US 1000000

enum { PIECE = 1 << 16, ALIGNMENT = 512, FIRST_ADDRESS = 1 << 30 };

typedef struct Block {
    int64_t size, alloc_ps, free_ps; /* free_ps G_MAXINT64: lives on */
    int64_t address;
    int32_t stage, microbatch; /* -1: none */
    SimMem kind;
    int tag; /* -1: lives before the step begins */
} Block;

typedef struct Event {
    int64_t time_ps;
    guint block;
    bool frees;
} Event;

typedef struct Snapshot {
    const ReportTraceAsk *ask;
    const Report *report;
    GString *out;
    bool stopped;
} Snapshot;

static bool wants(const Snapshot *s, int rank)
{
    return s->ask->ranks == NULL || (rank < s->ask->rank_count && s->ask->ranks[rank]);
}

static void flush(Snapshot *s)
{
    if (!s->stopped)
        s->stopped = !s->ask->put(s->out->str, s->out->len, s->ask->data);
    g_string_truncate(s->out, 0);
}

/* --- blocks --- */

static bool on_gpu(int kind)
{
    return kind < SIM_MEM_GPU_COUNT;
}

/* How well a block suits what `span` gives back: 0 not at all. */
static int suits(const Block *block, const SimSpan *span, SimMem kind)
{
    if (block->kind != kind || block->free_ps != G_MAXINT64)
        return 0;
    if (block->stage != span->stage)
        return 1;
    return block->microbatch == span->microbatch ? 3 : 2;
}

static Block *find_block(const GArray *blocks, guint first_live, const SimSpan *span, SimMem kind)
{
    Block *found = NULL;
    int best = 0;
    for (guint i = blocks->len; i-- > first_live;) {
        Block *block = &g_array_index(blocks, Block, i);
        const int suit = suits(block, span, kind);
        if (suit > best || (suit == 1 && best == 1)) {
            best = suit;
            found = block;
        }
        if (best == 3)
            break;
    }
    return found;
}

static void give_back(GArray *blocks, guint first_live, const SimSpan *span, SimMem kind, int64_t bytes,
                      int64_t now_ps)
{
    while (bytes > 0) {
        Block *block = find_block(blocks, first_live, span, kind);
        if (block == NULL)
            return; /* given before it was taken: the program's own check tells it */
        const int64_t part = MIN(bytes, block->size);
        bytes -= part;
        if (part == block->size) {
            block->free_ps = now_ps;
            continue;
        }
        Block rest = *block;
        rest.size = part;
        rest.free_ps = now_ps;
        block->size -= part;
        g_array_append_val(blocks, rest);
    }
}

static void change(GArray *blocks, guint first_live, const SimSpan *span, const int64_t *delta,
                   int64_t now_ps)
{
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++) {
        if (!on_gpu(kind) || delta[kind] == 0)
            continue;
        if (delta[kind] < 0) {
            give_back(blocks, first_live, span, (SimMem)kind, -delta[kind], now_ps);
            continue;
        }
        const Block block = {.size = delta[kind],
                             .alloc_ps = now_ps,
                             .free_ps = G_MAXINT64,
                             .stage = span->stage,
                             .microbatch = span->microbatch,
                             .kind = (SimMem)kind,
                             .tag = span->tag};
        g_array_append_val(blocks, block);
    }
}

/* Every block of a rank's step. */
static GArray *rank_blocks(const Report *report, const ReportSpans *spans, int rank)
{
    GArray *blocks = g_array_new(FALSE, TRUE, sizeof(Block));
    ReportWalk walk;
    guint first_live = 0;
    report_walk_begin(&report->program, &report->result, spans, rank, &walk);
    for (int kind = 0; kind < SIM_MEM_GPU_COUNT; kind++) {
        const Block block = {.size = walk.static_bytes[kind],
                             .free_ps = G_MAXINT64,
                             .stage = -1,
                             .microbatch = -1,
                             .kind = (SimMem)kind,
                             .tag = -1};
        if (block.size > 0)
            g_array_append_val(blocks, block);
    }
    for (int64_t now_ps; (now_ps = report_walk_next_ps(&walk)) < G_MAXINT64;) {
        const SimSpan *span = NULL;
        const int64_t *delta = report_walk_take(&walk, &span);
        if (delta != NULL)
            change(blocks, first_live, span, delta, now_ps);
        while (first_live < blocks->len && g_array_index(blocks, Block, first_live).free_ps < G_MAXINT64)
            first_live++;
    }
    int64_t address = FIRST_ADDRESS;
    for (guint i = 0; i < blocks->len; i++) {
        Block *block = &g_array_index(blocks, Block, i);
        block->address = address;
        address += (block->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return blocks;
}

/* --- events --- */

static int compare_events(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    if (x->frees != y->frees)
        return x->frees ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static GArray *events_of(const GArray *blocks)
{
    GArray *events = g_array_new(FALSE, FALSE, sizeof(Event));
    for (guint i = 0; i < blocks->len; i++) {
        const Block *block = &g_array_index(blocks, Block, i);
        const Event alloc = {block->alloc_ps, i, false}, free = {block->free_ps, i, true};
        if (block->alloc_ps == block->free_ps)
            continue; /* taken and given at once */
        g_array_append_val(events, alloc);
        if (block->free_ps < G_MAXINT64)
            g_array_append_val(events, free);
    }
    g_array_sort(events, compare_events);
    return events;
}

static void write_frames(Snapshot *s, const Block *block)
{
    g_string_append_printf(s->out, "\"frames\":[{\"filename\":\"%s\",\"line\":%d,\"name\":\"",
                           report_mem_name(block->kind), MAX(block->stage, 0));
    if (block->tag < 0)
        g_string_append(s->out, "before the step");
    else
        g_string_append(s->out, sim_tag_label((SimTag)block->tag));
    if (block->microbatch >= 0)
        g_string_append_printf(s->out, " %d", block->microbatch);
    g_string_append(s->out, "\"}]");
}

static void write_event(Snapshot *s, const char *action, const Block *block, int64_t time_ps, bool *any)
{
    if (s->out->len > PIECE)
        flush(s);
    g_string_append_printf(s->out,
                           "%s\n{\"action\":\"%s\",\"addr\":%" G_GINT64_FORMAT ",\"size\":%" G_GINT64_FORMAT
                           ",\"stream\":0,\"time_us\":%" G_GINT64_FORMAT ",",
                           *any ? "," : "", action, block->address, block->size, time_ps / PS_PER_US);
    write_frames(s, block);
    g_string_append_c(s->out, '}');
    *any = true;
}

static void write_trace(Snapshot *s, const GArray *blocks, int64_t room_bytes)
{
    GArray *events = events_of(blocks);
    int64_t level = 0;
    bool any = false, oom = false;
    for (guint i = 0; i < events->len; i++) {
        const Event *event = &g_array_index(events, Event, i);
        const Block *block = &g_array_index(blocks, Block, event->block);
        level += event->frees ? -block->size : block->size;
        if (level > room_bytes && !oom) {
            write_event(s, "oom", block, event->time_ps, &any);
            g_string_truncate(s->out, s->out->len - 1); /* what was free before it */
            g_string_append_printf(s->out, ",\"device_free\":%" G_GINT64_FORMAT "}",
                                   MAX(room_bytes - (level - block->size), 0));
            oom = true;
        }
        if (event->frees)
            write_event(s, "free_requested", block, event->time_ps, &any);
        write_event(s, event->frees ? "free_completed" : "alloc", block, event->time_ps, &any);
    }
    g_array_unref(events);
}

/* What is there at the end of the step, a segment a block. */
static void write_segments(Snapshot *s, const GArray *blocks, int device, bool *any)
{
    for (guint i = 0; i < blocks->len; i++) {
        const Block *block = &g_array_index(blocks, Block, i);
        if (block->free_ps < G_MAXINT64)
            continue;
        if (s->out->len > PIECE)
            flush(s);
        g_string_append_printf(
            s->out,
            "%s\n{\"device\":%d,\"address\":%" G_GINT64_FORMAT ",\"total_size\":%" G_GINT64_FORMAT
            ",\"allocated_size\":%" G_GINT64_FORMAT ",\"active_size\":%" G_GINT64_FORMAT
            ",\"stream\":0,\"segment_type\":\"large\",\"blocks\":[{\"address\":%" G_GINT64_FORMAT
            ",\"size\":%" G_GINT64_FORMAT ",\"requested_size\":%" G_GINT64_FORMAT
            ",\"state\":\"active_allocated\",",
            *any ? "," : "", device, block->address, block->size, block->size, block->size, block->address,
            block->size, block->size);
        write_frames(s, block);
        g_string_append(s->out, "}]}");
        *any = true;
    }
}

/* --- the document --- */

static void write_head(Snapshot *s)
{
    const Report *report = s->report;
    OrrJsonWriter writer;
    g_autoptr(GString) head = g_string_new(NULL);
    orr_jw_init(&writer, head, true);
    orr_jw_begin(&writer, NULL, '{');
    orr_jw_text(&writer, "version", ORRERY_VERSION);
    orr_jw_text(&writer, "scenario", report->spec->name);
    if (report->source != NULL)
        orr_jw_text(&writer, "scenario_hash", report->source->scenario_hash);
    orr_jw_number(&writer, "capacity_bytes", report->capacity_bytes);
    orr_jw_begin(&writer, "ranks", '[');
    for (int rank = 0; rank < report->result.ranks; rank++)
        if (wants(s, rank))
            orr_jw_int(&writer, NULL, rank);
    orr_jw_end(&writer, ']');
    orr_jw_end(&writer, '}');
    g_string_append_printf(s->out, "{\"orrery\":%s,\"segments\":[", head->str);
}

/* What the GPU has for the program's own tensors, beside what allocator and context add to the rank's peak. */
static int64_t room_of(const Report *report, int rank)
{
    const ReportStage *stage = &report->stages[rank / MAX(report->program.replicas, 1)];
    return (int64_t)(report->capacity_bytes - (stage->reserved_bytes - stage->peak_bytes));
}

void report_write_snapshot(const Report *report, const ReportTraceAsk *ask)
{
    Snapshot s = {.ask = ask, .report = report, .out = g_string_sized_new(2 * PIECE)};
    ReportSpans spans = report_spans_index(&report->result);
    bool any = false;
    int device = 0;
    write_head(&s);
    for (int pass = 0; pass < 2;
         pass++) { /* blocks are found twice: those of all ranks together may be many */
        device = 0;
        for (int rank = 0; rank < report->result.ranks && !s.stopped; rank++) {
            if (!wants(&s, rank))
                continue;
            GArray *blocks = rank_blocks(report, &spans, rank);
            if (pass == 0) {
                write_segments(&s, blocks, device, &any);
            } else {
                g_string_append(s.out, device > 0 ? ",[" : "[");
                write_trace(&s, blocks, room_of(report, rank));
                g_string_append(s.out, "]");
            }
            g_array_unref(blocks);
            device++;
        }
        g_string_append(s.out, pass == 0 ? "],\n\"device_traces\":[" : "]}\n");
    }
    flush(&s);
    report_spans_clear(&spans);
    g_string_free(s.out, TRUE);
}
