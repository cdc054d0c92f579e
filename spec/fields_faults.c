/* spec/fields_faults.c - field tables of faults, checkpoints and storage. */
#include "spec/fields_internal.h"

#define MTBF(member, text)  SPEC_F_DOUBLE(SpecFaults, member, ORR_UNIT_SECONDS, 0, 1e15, "0", 0, text)
#define PHASE(member, text) SPEC_F_DOUBLE(SpecFaults, member, ORR_UNIT_SECONDS, 0, 1e7, "0", 0, text)

static const SpecField storage_fields[] = {
    SPEC_F_FILE_KEYS("storage"),
    SPEC_F_NAME(SpecStorage, name, "\"\"", "Name in reports."),
    SPEC_F_DOUBLE(SpecStorage, read_bytes_per_s, ORR_UNIT_BYTES_PER_S, 1, 1e18, NULL, SPEC_FIELD_REQUIRED,
                  "Sustained rate at which checkpoints are read."),
    SPEC_F_DOUBLE(SpecStorage, write_bytes_per_s, ORR_UNIT_BYTES_PER_S, 1, 1e18, NULL, SPEC_FIELD_REQUIRED,
                  "Sustained rate at which checkpoints are written."),
    SPEC_F_WORD(SpecStorage, shared_by, &spec_words_shared_by, "\"all\"", 0,
                "Who shares the rates: all nodes together, or each node for itself (local disks)."),
    SPEC_F_DOUBLE(SpecStorage, node_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e18, "0", 0,
                  "Most that one node moves to or from the storage; 0: no limit."),
};
SPEC_TABLE(spec_table_storage, "storage", "Where checkpoints are written to and read from.", storage_fields);

/* "best": 0, chosen by the exact formula. */
static bool read_interval(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    static const SpecField number = {
        .key = "interval_s", .type = SPEC_TYPE_DOUBLE, .unit = ORR_UNIT_SECONDS, .min = 1e-3, .max = 1e9};
    if (orr_json_type(node) == ORR_JSON_TEXT && g_str_equal(orr_json_text(node), "best")) {
        *(double *)target = 0;
        return true;
    }
    return spec_read_number(context, &number, node, target, error);
}

static const SpecField checkpoint_fields[] = {
    SPEC_F_WORD(SpecCheckpoint, mode, &spec_words_checkpoint, "\"sync\"", 0,
                "none: a failure restarts the run from zero. sync: training waits until the checkpoint is "
                "written. async: training waits for the copy to host memory only. peers: as async, and the "
                "copy goes to another node's host memory."),
    SPEC_F_CUSTOM(
        SpecCheckpoint, interval_s, read_interval, "\"best\"", 0,
        "\"best\" or a number from 0.001 to 1e9 seconds",
        "{\"anyOf\":[{\"const\":\"best\"},{\"type\":\"number\",\"minimum\":0.001},{\"type\":\"string\"}]}",
        NULL, "Training between two checkpoints."),
    SPEC_F_DOUBLE(SpecCheckpoint, write_s, ORR_UNIT_SECONDS, 0, 1e6, "0", 0,
                  "Measured time to write one checkpoint; 0: its bytes at the storage's rate."),
    SPEC_F_DOUBLE(SpecCheckpoint, load_s, ORR_UNIT_SECONDS, 0, 1e6, "0", 0,
                  "Measured time to read one checkpoint back; 0: its bytes at the storage's rate."),
    SPEC_F_DOUBLE(SpecCheckpoint, bytes, ORR_UNIT_BYTES, 0, 1e18, "0", 0,
                  "Size of one checkpoint; 0: weights, master copy and moments of every parameter."),
    SPEC_F_BOOL(SpecCheckpoint, broadcast, "false", 0,
                "One node reads a checkpoint and sends it to the others; false: all read their share."),
    SPEC_F_BOOL(SpecCheckpoint, one_writer, "false", 0,
                "One node writes a whole checkpoint; false: all write their share."),
    SPEC_F_INT(
        SpecCheckpoint, store_every, 1, 1e6, "20", 0,
        "Mode peers: one copy out of this many goes to storage too, for failures that take several nodes."),
    SPEC_F_OBJECT(
        SpecCheckpoint, storage, spec_table_storage, SPEC_FIELD_DERIVED | SPEC_FIELD_PRESET,
        "Where checkpoints go: a preset's name, a path or an object; default: the scenario's storage."),
};
static SPEC_TABLE(table_checkpoint, "faults.checkpoint", "How a run saves what it has learned.",
                  checkpoint_fields);

static bool read_failures(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecFaults *faults = target;
    double last_s = 0;
    int count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MOST_FAILURES)
        return spec_read_fail(context, NULL, error, "is not a list of at most %d times; write [3600, 7200]",
                              SPEC_MOST_FAILURES);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        const double at_s = orr_json_type(item) == ORR_JSON_NUMBER ? orr_json_number(item) : -1;
        if (!(at_s > last_s) || at_s > 1e12)
            return spec_read_fail(context, item, error,
                                  "is not later than the one before; give rising seconds above 0");
        faults->failures_s[count++] = last_s = at_s;
    }
    faults->failure_count = count;
    return true;
}

static const SpecField faults_fields[] = {
    SPEC_F_FILE_KEYS("faults"),
    SPEC_F_NAME(SpecFaults, name, "\"\"", "Name in reports."),
    MTBF(gpu_mtbf_s, "Mean time between failures of one GPU; 0: none."),
    MTBF(gpu_memory_mtbf_s, "Mean time between failures of one GPU's memory; 0: none."),
    MTBF(node_mtbf_s, "Mean time between failures of one node's host (CPU, memory, disks, power); 0: none."),
    MTBF(network_mtbf_s,
         "Mean time between failures of one node's NICs, cables and share of switches; 0: none."),
    MTBF(software_mtbf_s,
         "Mean time between software crashes on one node. The node stays in service. 0: none."),
    MTBF(spot_mtbf_s,
         "Mean time until whoever lends one node (spot, preemptible) takes it back; 0: never. The job gets "
         "another one as behind a failure."),
    MTBF(rack_mtbf_s, "Mean time between failures of one rack, with all its nodes; 0: none."),
    SPEC_F_INT(SpecFaults, rack_nodes, 1, 1e5, "4", 0, "Nodes of a rack."),
    MTBF(pod_mtbf_s, "Mean time between failures of one pod, with all its nodes; 0: none."),
    SPEC_F_INT(SpecFaults, pod_nodes, 1, 1e6, "128", 0, "Nodes of a pod."),
    {.key = "failures_s",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_failures,
     .form = "a list of rising times in seconds",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"number\",\"minimum\":0},\"maxItems\":64}",
     .help = "A node fails at each of these times of the campaign, and nothing fails at random."},
    SPEC_F_BOOL(
        SpecFaults, elastic, "false", 0,
        "Without enough spare nodes the job goes on with fewer model replicas until nodes come back."),
    SPEC_F_BOOL(
        SpecFaults, replan, "false", 0,
        "With elastic: on fewer nodes the job takes the tensor and pipeline degrees that are fastest there."),
    PHASE(detection_s, "Time until a failure is noticed."),
    PHASE(reschedule_s, "Time until the job has its nodes again after a failure."),
    PHASE(init_s,
          "Time in which processes, compilers and communicators start, whatever the number of nodes."),
    SPEC_F_DOUBLE(SpecFaults, init_s_per_node, ORR_UNIT_SECONDS, 0, 1e4, "0", 0,
                  "Further start-up time for each node of the job."),
    PHASE(warmup_s, "Extra time of the first steps after each start."),
    SPEC_F_DOUBLE(SpecFaults, manual_frac, ORR_UNIT_NONE, 0, 1, "0", 0,
                  "Share of the failures after which the job does not start again by itself: it hangs, or "
                  "cannot."),
    PHASE(response_s,
          "Mean time until a person has restarted the job after a failure that needs one (manual_frac). "
          "Times are exponentially distributed."),
    SPEC_F_DOUBLE(
        SpecFaults, repeat_frac, ORR_UNIT_NONE, 0, 0.95, "0", 0,
        "Share of the restarts by a person that fail because the replacement is bad too. They are repeated."),
    MTBF(rollback_mtbf_s, "Mean training time between divergences of the loss, for the job as a whole. Each "
                          "sends the run back by rollback_s. 0: none."),
    PHASE(rollback_s, "Training before the last checkpoint that a divergence throws away."),
    SPEC_F_DOUBLE(SpecFaults, repair_s, ORR_UNIT_SECONDS, 0, 1e8, "0", 0,
                  "How long a node is out of service after a hardware failure."),
    SPEC_F_INT(SpecFaults, spares, 0, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hot spare nodes, on top of the cluster's. Default: as many as are needed; the report says "
               "how many."),
    SPEC_F_BOOL(SpecFaults, fails_in_restart, "true", 0, "Restarts are interrupted by failures too."),
    SPEC_F_OBJECT(SpecFaults, checkpoint, table_checkpoint, 0, "How a run saves what it has learned."),
};
SPEC_TABLE(spec_table_faults, "faults",
           "What fails, and what a failure costs: read by 'orrery campaign', 'run' and 'plan'.",
           faults_fields);

/* Read without notes: a step's report is not about them. */
bool spec_read_faults(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecFaults *faults = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give a preset's name, a path, or an object",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    faults->given = true;
    return spec_read_table(&inside, &spec_table_faults, node, faults, error);
}
