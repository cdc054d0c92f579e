/* traffic/rows.c - what ops hold of links: an op that sends b bytes a rank in a time d uses b / (d rate) of its loads at
 * full pace. Links on which that can be too much are instances of one row (traffic/links.c). */
#include "traffic/rows.h"

#include <math.h>
#include <string.h>

#include "costmodel/placement.h"
#include "costmodel/states.h"

/* The engine tells parts of an op's weight (at most 1/1024 of a NIC) up to 2^22 of them: a link's capacity times the
 * largest load stays below 2^32. */
#define MOST_CAPACITY   ((int64_t)1 << 24)
#define LEAST_CAPACITY  ((int64_t)1 << 12)
#define LOADED_CAPACITY 4294967296.0
#define MOST_USES       3

typedef struct Use {
    int user;
    double part; /* of the op's bytes */
} Use;

/* An op of a class that sends: the hash reads the first two. */
typedef struct Work {
    int32_t cls, op;
    int32_t tag, stage; /* the op's */
    int32_t index;      /* of the op that it becomes */
    int uses;
    Use use[MOST_USES];
} Work;

typedef struct Rows {
    const TrafficParty *parties;
    int party_count;
    OrrArena *arena;
    SimProgram *program;
    GArray *users;       /* TrafficUser */
    GPtrArray *works;    /* Work */
    GHashTable *user_of; /* text -> 1 + index */
    GHashTable *work_of; /* Work -> itself */
    GArray *links;       /* GArray* of TrafficLoad, an instance each */
    int64_t capacity;    /* of a link, whatever its rate */
} Rows;

static guint hash_work(gconstpointer key)
{
    const Work *work = key;
    guint hash = (guint)work->cls;
    return hash * 0x9e3779b1u + (guint)work->op;
}

static gboolean same_work(gconstpointer a, gconstpointer b)
{
    const Work *x = a, *y = b;
    return x->cls == y->cls && x->op == y->op;
}

static TrafficUser *user_at(const Rows *rows, int index)
{
    return &g_array_index(rows->users, TrafficUser, index);
}

static int party_index(const Rows *rows, int cls)
{
    for (int i = 0; i < rows->party_count; i++)
        if (cls >= rows->parties[i].first_class &&
            cls < rows->parties[i].first_class + rows->parties[i].classes)
            return i;
    g_assert_not_reached();
}

static const TrafficParty *party_of(const Rows *rows, int cls)
{
    return &rows->parties[party_index(rows, cls)];
}

/* Gathers and reductions may run at once: they are two users. */
static int user_of(Rows *rows, const Work *work, TrafficDimension dimension, const TrafficMeeting *meeting,
                   double rate)
{
    g_autofree char *key = g_strdup_printf("%d/%d/%d/%p", work->cls, (int)dimension,
                                           work->tag == SIM_TAG_PARAM_GATHER, (const void *)meeting);
    const int known = GPOINTER_TO_INT(g_hash_table_lookup(rows->user_of, key));
    if (known > 0)
        return known - 1;
    const TrafficUser user = {.meeting = meeting,
                              .dimension = dimension,
                              .party = party_index(rows, work->cls),
                              .cls = work->cls,
                              .rate = rate};
    g_array_append_val(rows->users, user);
    g_hash_table_insert(rows->user_of, g_steal_pointer(&key), GINT_TO_POINTER((int)rows->users->len));
    return (int)rows->users->len - 1;
}

/* --- which op is whose --- */

static void use(Rows *rows, Work *work, TrafficDimension dimension, const TrafficKind *kind, double part)
{
    Traffic *traffic = party_of(rows, work->cls)->traffic;
    const TrafficMeeting *meeting = traffic_meeting(traffic, kind);
    if (meeting->across && traffic->error == NULL)
        work->use[work->uses++] =
            (Use){user_of(rows, work, dimension, meeting, traffic->out_bytes_per_s), part};
}

static void use_message(Rows *rows, Work *work, const TrafficParty *party, int step)
{
    const SimPlan *plan = party->plan;
    int to = 0, chunk = 0;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, work->stage + step, &to,
                 &chunk);
    const TrafficKind kind = {.pair = true, .from = work->cls - party->first_class, .to = to};
    use(rows, work, TRAFFIC_PIPELINE, &kind, 1);
}

/* A pass is one op: what it sends is told apart by the time that each dimension takes in it. */
static void use_pass(Rows *rows, Work *work, const TrafficParty *party, const SimWork *what)
{
    static const struct {
        SimPart part;
        TrafficDimension dimension;
        CostRanks ranks;
    } parts[MOST_USES] = {{SIM_PART_TENSOR_COMM, TRAFFIC_TENSOR, COST_RANKS_TENSOR},
                          {SIM_PART_CONTEXT_COMM, TRAFFIC_CONTEXT, COST_RANKS_CONTEXT},
                          {SIM_PART_EXPERT_COMM, TRAFFIC_EXPERT, COST_RANKS_EXPERT}};
    TrafficKind kinds[MOST_USES];
    double across_ps[MOST_USES] = {0}, all_ps = 0;
    for (int i = 0; i < MOST_USES; i++) {
        kinds[i] = traffic_whole_group(party->traffic->spec, parts[i].ranks, work->cls - party->first_class);
        if (kinds[i].count > 1 && traffic_meeting(party->traffic, &kinds[i])->across)
            across_ps[i] = (double)what->part_ps[parts[i].part];
        all_ps += across_ps[i];
    }
    for (int i = 0; i < MOST_USES; i++)
        if (across_ps[i] > 0)
            use(rows, work, parts[i].dimension, &kinds[i], across_ps[i] / all_ps);
}

/* Replicas in shard groups: what is gathered or scattered stays in a group, and what a rank then holds of a reduction is
 * summed over the groups. Of a buffer of 1, group and sum send over d domains: 1 - 1/d, and 2 (1 - 1/d) / shard. */
static void use_shards(Rows *rows, Work *work, const TrafficKind *whole, int shard)
{
    const Spec *spec = party_of(rows, work->cls)->traffic->spec;
    const TrafficKind kinds[] = {
        {.ranks = whole->ranks, .step = 1, .count = shard, .from = whole->from},
        {.ranks = whole->ranks, .step = shard, .count = whole->count / shard, .from = whole->from}};
    const double buffers[] = {1, work->tag == SIM_TAG_GRAD_REDUCE ? 2.0 / shard : 0};
    double sent[G_N_ELEMENTS(kinds)], all = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const CostGroup group = cost_group_part(spec, kinds[i].ranks, kinds[i].step, kinds[i].count);
        sent[i] = kinds[i].count > 1 ? buffers[i] * (1 - 1 / fmax(1, cost_group_domains(&group))) : 0;
        all += sent[i];
    }
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (sent[i] > 0)
            use(rows, work, TRAFFIC_DATA, &kinds[i], sent[i] / all);
}

static void use_replicas(Rows *rows, Work *work, const Spec *spec, int rank)
{
    const TrafficKind whole = traffic_whole_group(spec, COST_RANKS_REPLICAS, rank);
    const int shard = spec->parallel.zero > 0 ? cost_shard_degree(spec, whole.count) : whole.count;
    if (shard > 1 && shard < whole.count)
        use_shards(rows, work, &whole, shard);
    else if (whole.count > 1)
        use(rows, work, TRAFFIC_DATA, &whole, 1);
}

static void use_plan(Rows *rows, Work *work, const TrafficParty *party, const SimWork *what)
{
    const int rank = work->cls - party->first_class;
    if (work->tag == SIM_TAG_GRAD_REDUCE || work->tag == SIM_TAG_PARAM_GATHER) {
        use_replicas(rows, work, party->traffic->spec, rank);
    } else if (work->tag == SIM_TAG_EMBEDDING_REDUCE) {
        const TrafficKind kind = {
            .pair = true, .from = rank, .to = rank == 0 ? party->plan->shape.ranks - 1 : 0};
        use(rows, work, TRAFFIC_DATA, &kind, 1);
    } else if (work->tag == SIM_TAG_SEND_FORWARD || work->tag == SIM_TAG_SEND_BACKWARD) {
        use_message(rows, work, party, work->tag == SIM_TAG_SEND_FORWARD ? 1 : -1);
    } else if (work->tag <= SIM_TAG_FORWARD_BACKWARD) {
        use_pass(rows, work, party, what);
    }
}

static Work *new_work(Rows *rows, const Work *key, const SimWork *what)
{
    Work *work = g_memdup2(key, sizeof *key);
    const TrafficParty *party = party_of(rows, key->cls);
    if (party->plan != NULL)
        use_plan(rows, work, party, what);
    else if (party->sends != NULL)
        work->use[work->uses++] =
            (Use){user_of(rows, key, TRAFFIC_BESIDE, party->sends, party->bytes_per_s), 1};
    g_ptr_array_add(rows->works, work);
    g_hash_table_add(rows->work_of, work);
    return work;
}

static void note(Rows *rows, int cls, int32_t index)
{
    const SimOp *op = &rows->program->ops[index];
    const SimWork *what = &rows->program->works[op->work];
    const double duration_s = (double)sim_work_duration_ps(what) * 1e-12;
    if (what->scale_out_bytes <= 0 || duration_s <= 0)
        return;
    const Work key = {.cls = cls, .op = index, .tag = op->tag, .stage = op->stage};
    const Work *work = g_hash_table_lookup(rows->work_of, &key);
    if (work == NULL)
        work = new_work(rows, &key, what);
    for (int i = 0; i < work->uses; i++) {
        TrafficUser *user = user_at(rows, work->use[i].user);
        const double bytes = (double)what->scale_out_bytes * work->use[i].part;
        user->bytes += bytes;
        user->most = MAX(user->most, bytes / (duration_s * user->rate));
    }
}

static void note_all(Rows *rows)
{
    for (int c = 0; c < rows->program->classes; c++) {
        for (int s = 0; s < SIM_MAX_STREAMS; s++) {
            const SimList *list = &rows->program->class_list[c].streams[s];
            for (int64_t i = 0; i < list->count; i++)
                if (list->instrs[i].op != SIM_ONLY_WAITS)
                    note(rows, c, list->instrs[i].op);
        }
    }
}

/* --- the program --- */

/* Of link `loads` that the op uses, in parts of what it carries. */
static double used_of(const Rows *rows, const Work *work, const SimWork *what, const GArray *loads)
{
    const double duration_s = (double)sim_work_duration_ps(what) * 1e-12;
    double used = 0;
    for (guint k = 0; k < loads->len; k++) {
        const TrafficLoad *load = &g_array_index(loads, TrafficLoad, k);
        for (int i = 0; i < work->uses; i++)
            if (work->use[i].user == load->user)
                used += load->load * work->use[i].part * (double)what->scale_out_bytes /
                        (duration_s * user_at(rows, load->user)->rate);
    }
    return used;
}

/* Shares of the new row behind those that the work has. Replicas hold equal parts, and so do the likes that one of them
 * stands for. A group never uses more than the link: its time says so. */
static void hold(const Rows *rows, const Work *work, SimWork *what)
{
    const TrafficParty *party = party_of(rows, work->cls);
    const double most = party->plan != NULL ? 1 : 1000;
    int count = what->more_share_count;
    SimShare *shares = ORR_ARENA_NEW(rows->arena, SimShare, count + (int)rows->links->len);
    if (count > 0)
        memcpy(shares, what->more_shares, sizeof *shares * (size_t)count);
    for (guint l = 0; l < rows->links->len; l++) {
        const double used = used_of(rows, work, what, g_array_index(rows->links, GArray *, l));
        const int64_t part = (int64_t)((double)rows->capacity * MIN(used, most)) / party->replicas,
                      amount = part * party->replicas / rows->program->replicas;
        if (amount > 0)
            shares[count++] = (SimShare){.amount = amount,
                                         .resource = (int16_t)(rows->program->resource_count - 1),
                                         .mode = SIM_SHARE_FAIR,
                                         .instance = (int32_t)l + 1};
    }
    what->more_shares = shares;
    what->more_share_count = count;
}

static int64_t capacity_for(const GArray *links)
{
    double most = 1;
    int64_t capacity = MOST_CAPACITY;
    for (guint l = 0; l < links->len; l++) {
        const GArray *loads = g_array_index(links, GArray *, l);
        for (guint i = 0; i < loads->len; i++)
            most = MAX(most, g_array_index(loads, TrafficLoad, i).load);
    }
    while (capacity > LEAST_CAPACITY && (double)capacity * most > LOADED_CAPACITY)
        capacity /= 2;
    return capacity;
}

/* Nobody has an instance by himself: shares name theirs. */
static void add_row(Rows *rows)
{
    SimProgram *program = rows->program;
    const int ranks = program->classes * program->replicas;
    SimResource *resources = ORR_ARENA_NEW(rows->arena, SimResource, program->resource_count + 1);
    int32_t *nobody = ORR_ARENA_NEW(rows->arena, int32_t, ranks);
    for (int r = 0; r < ranks; r++)
        nobody[r] = SIM_NO_INSTANCE;
    if (program->resource_count > 0)
        memcpy(resources, program->resources, sizeof *resources * (size_t)program->resource_count);
    resources[program->resource_count++] = (SimResource){.name = "fabric link",
                                                         .capacity = rows->capacity,
                                                         .instance_of_rank = nobody,
                                                         .instances = (int32_t)rows->links->len};
    program->resources = resources;
}

/* Ops that use links are rows of their own, and so are their works. */
static void write_works(Rows *rows)
{
    SimProgram *program = rows->program;
    SimOp *ops = ORR_ARENA_NEW(rows->arena, SimOp, program->op_count + (int64_t)rows->works->len);
    SimWork *works = ORR_ARENA_NEW(rows->arena, SimWork, program->work_count + rows->works->len);
    if (program->op_count > 0)
        memcpy(ops, program->ops, sizeof *ops * (size_t)program->op_count);
    if (program->work_count > 0)
        memcpy(works, program->works, sizeof *works * (size_t)program->work_count);
    for (guint i = 0; i < rows->works->len; i++) {
        Work *work = g_ptr_array_index(rows->works, i);
        work->index = work->op;
        if (work->uses == 0)
            continue;
        work->index = program->op_count++;
        ops[work->index] = ops[work->op];
        ops[work->index].work = (int32_t)program->work_count++;
        works[ops[work->index].work] = works[ops[work->op].work];
        hold(rows, work, &works[ops[work->index].work]);
    }
    program->ops = ops;
    program->works = works;
}

static void write_list(const Rows *rows, int cls, SimList *list)
{
    SimInstr *instrs = ORR_ARENA_NEW(rows->arena, SimInstr, list->count);
    for (int64_t i = 0; i < list->count; i++) {
        instrs[i] = list->instrs[i];
        if (instrs[i].op == SIM_ONLY_WAITS)
            continue;
        const Work key = {.cls = cls, .op = instrs[i].op};
        const Work *work = g_hash_table_lookup(rows->work_of, &key);
        if (work != NULL)
            instrs[i].op = work->index;
    }
    list->instrs = instrs;
}

static void write_lists(Rows *rows)
{
    SimProgram *program = rows->program;
    SimClass *classes = ORR_ARENA_NEW(rows->arena, SimClass, program->classes);
    for (int c = 0; c < program->classes; c++) {
        classes[c] = program->class_list[c];
        for (int s = 0; s < SIM_MAX_STREAMS; s++)
            if (classes[c].streams[s].count > 0)
                write_list(rows, c, &classes[c].streams[s]);
    }
    program->class_list = classes;
}

static bool add_links(Rows *rows, bool check, TrafficSummary *summary, GError **error)
{
    const TrafficParty *own = &rows->parties[0];
    note_all(rows);
    for (int i = 0; i < rows->party_count; i++)
        if (!traffic_went_well(rows->parties[i].traffic, error))
            return false;
    rows->links = traffic_shared_links(own->traffic->topology, rows->users, summary);
    if (rows->links->len > 0) {
        rows->capacity = capacity_for(rows->links);
        add_row(rows);
        write_works(rows);
        write_lists(rows);
    }
    return traffic_summarise(own->traffic->topology, rows->users, own->replicas, check, rows->arena, summary,
                             error);
}

bool traffic_add_links(const TrafficParty *parties, int count, OrrArena *arena, SimProgram *program,
                       bool check, TrafficSummary *summary, GError **error)
{
    Rows rows = {.parties = parties, .party_count = count, .arena = arena, .program = program};
    rows.users = g_array_new(FALSE, FALSE, sizeof(TrafficUser));
    rows.works = g_ptr_array_new_with_free_func(g_free);
    rows.user_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    rows.work_of = g_hash_table_new(hash_work, same_work);
    const bool ok = add_links(&rows, check, summary, error);
    if (rows.links != NULL)
        g_array_free(rows.links, TRUE);
    g_hash_table_destroy(rows.work_of);
    g_hash_table_destroy(rows.user_of);
    g_ptr_array_free(rows.works, TRUE);
    g_array_free(rows.users, TRUE);
    return ok;
}
