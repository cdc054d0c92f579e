"""The members of answers, as types. Written by python/shapes.py from what is answered; not to be edited."""

from __future__ import annotations

from typing import Any, List, Optional

from ._answer import Answer, Fields


class ReportStamp(Answer):
    version: str
    scenario_hash: str
    profiles: List[str]
    defaulted: List[str]


class ReportModel(Answer):
    name: str
    parameters: int
    active_parameters: int
    trained_parameters: int


class ReportInterval(Answer):
    low_s: float
    high_s: float
    coverage: float
    widening: float
    runs: int
    outside: List[str]


class ReportTime(Answer):
    compute_s: float
    recompute_s: float
    tensor_comm_s: float
    context_comm_s: float
    expert_comm_s: float
    pipeline_comm_s: float
    data_comm_s: float
    offload_s: float
    optimizer_s: float
    bubble_s: float
    other_s: float
    stragglers_s: float
    lengths_s: float
    input_s: float


class ReportMemoryStages(Answer):
    stage: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    workspace_bytes: int
    reserved_bytes: float
    peak_bytes: int
    peak_time_s: float
    host_bytes: int


class ReportMemoryOffload(Answer):
    scheme: str
    host_bytes_per_node: float
    host_capacity_bytes: int
    host_fits: bool
    nvme_bytes_per_node: float
    nvme_capacity_bytes: int
    nvme_fits: bool
    to_host_busy_frac: float
    to_gpu_busy_frac: float
    host_busy_frac: float
    disk_read_busy_frac: float
    disk_write_busy_frac: float
    window_layers: int
    direct_pieces: int


class ReportMemory(Answer):
    capacity_bytes: int
    peak_bytes: int
    reserved_bytes: float
    needed_bytes: int
    short_bytes: int
    verdict: str
    odds: float
    reserve_bytes: float
    stages: List[ReportMemoryStages]
    offload: ReportMemoryOffload


class ReportBalance(Answer):
    context_rank_work: List[int]
    context_busiest: int
    expert_busiest: float
    dropped_frac: float


class ReportInput(Answer):
    bytes_per_s: float
    tokens_per_s: float
    stage: str
    binds: bool
    cached: bool
    fetch_s: float
    wait_s: float
    eval_frac: float
    skipped_steps_frac: float


class ReportJitterSlowest(Answer):
    gpu: int
    node: int
    pipeline_rank: int
    data_rank: int
    slower_frac: float


class ReportJitterGain(Answer):
    evict_frac: float
    backup_frac: float
    async_frac: float


class ReportJitter(Answer):
    steps: int
    mean_s: float
    p50_s: float
    p99_s: float
    worst_s: float
    simulated_ranks: int
    slowest: ReportJitterSlowest
    gain: ReportJitterGain


class ReportNetworkDimensionsData(Answer):
    bytes: int
    slowest_times: float
    fastest_times: float


class ReportNetworkDimensionsPipeline(Answer):
    bytes: int
    slowest_times: float
    fastest_times: int


class ReportNetworkDimensions(Answer):
    data: ReportNetworkDimensionsData
    pipeline: ReportNetworkDimensionsPipeline


class ReportNetworkTiers(Answer):
    to: str
    links: int
    links_used: int
    bytes_per_s: float
    bytes: int
    busy_frac: float
    busiest_frac: float
    data_bytes: int
    pipeline_bytes: int


class ReportNetworkBusiestLinks(Answer):
    to: str
    bytes_per_s: float
    bytes: int
    busy_frac: float
    data_bytes: int
    pipeline_bytes: int


class ReportNetworkBeside(Answer):
    name: str
    seconds: float
    alone_s: float


class ReportNetwork(Answer):
    fidelity: str
    topology: str
    routing: str
    uncontended_step_s: float
    contention_s: float
    folding_exact: bool
    shared_links: int
    shared_links_complete: bool
    shared_links_left_out: int
    left_out_times: int
    dimensions: ReportNetworkDimensions
    tiers: List[ReportNetworkTiers]
    busiest_links: List[ReportNetworkBusiestLinks]
    beside: List[ReportNetworkBeside]


class ReportEpoch(Answer):
    samples_per_rank: float
    steps: int
    seconds: float


class ReportInitialBroadcast(Answer):
    bytes: int
    seconds: float


class ReportParameterServerStaleness(Answer):
    mean: float
    max: int
    histogram: List[int]


class ReportParameterServer(Answer):
    iteration_s: float
    compute_s: float
    push_s: float
    pull_s: float
    server_s: float
    exposed_s: float
    parts: int
    nic_sent_bytes: float
    nic_received_bytes: float
    staleness: ReportParameterServerStaleness


class ReportCompression(Answer):
    dense_bytes: int
    payload_bytes: float
    residual_bytes: int
    select_s: float
    restore_s: float
    dense_s: float
    compressed_s: float
    break_even_frac: float
    volume_break_even_frac: float


class ReportLengths(Answer):
    text_tokens: float
    positions: float
    filled_frac: float
    wait_frac: float


class ReportPhases(Answer):
    name: str
    kind: str
    role: str
    begin_s: float
    seconds: float
    gpus: int
    given: bool
    tail_s: float
    bound_by: str
    micro_batches: int
    micro_batch_tokens: int
    steps: int
    bytes: int


class ReportParts(Answer):
    roles: str
    nodes: int
    gpus: int
    busy_s: float
    idle_frac: float


class ReportRoles(Answer):
    name: str
    model: str
    gpus: int
    layout: str
    needed_bytes: Optional[int]
    capacity_bytes: Optional[int]


class ReportSequences(Answer):
    count: int
    mean_tokens: float
    mean_answer_tokens: float
    longest_tokens: float
    busiest_frac: float


class Report(Answer):
    schema: int
    scenario: str
    stamp: ReportStamp
    model: ReportModel
    gpus: int
    fits: bool
    step_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    model_flops_per_s_per_gpu: float
    mfu: float
    hfu: float
    mfu_by_convention: Fields
    bubble_frac: float
    interval: ReportInterval
    time: ReportTime
    memory: ReportMemory
    balance: ReportBalance
    input: Optional[ReportInput]
    jitter: Optional[ReportJitter]
    training: Fields
    network: Optional[ReportNetwork]
    days: Optional[float]
    gpu_hours: Optional[float]
    usd: Any
    kwh: Optional[float]
    chosen: Fields
    notes: List[str]
    epoch: ReportEpoch
    initial_broadcast: ReportInitialBroadcast
    waiting_kwh: float
    parameter_server: ReportParameterServer
    compression: ReportCompression
    lengths: ReportLengths
    version: str
    workload: str
    bound_by: str
    staleness_steps: int
    phases: List[ReportPhases]
    parts: List[ReportParts]
    roles: List[ReportRoles]
    sequences: ReportSequences


class SearchPruned(Answer):
    memory: int
    compute: int
    pipeline: int
    data: int
    replay: int


class SearchLooseData(Answer):
    survivors: int
    simulated: int
    below_frac: float


class SearchLoose(Answer):
    data: SearchLooseData


class SearchBest(Answer):
    recommended: bool
    step_s: float
    mfu: float
    training: Fields
    parallel: Fields
    execution: Fields
    report: Report


class SearchFamiliesTime(Answer):
    compute_s: float
    recompute_s: float
    tensor_comm_s: float
    context_comm_s: float
    expert_comm_s: float
    pipeline_comm_s: float
    data_comm_s: float
    offload_s: float
    optimizer_s: float
    bubble_s: float
    other_s: float
    stragglers_s: float
    lengths_s: float
    input_s: float


class SearchFamilies(Answer):
    training: Fields
    parallel: Fields
    execution: Fields
    step_s: float
    mfu: float
    bubble_frac: float
    peak_bytes: int
    reserved_bytes: float
    days: float
    gpu_hours: float
    kwh: float
    effective_days: Any
    time: SearchFamiliesTime


class SearchParetoTime(Answer):
    compute_s: float
    recompute_s: float
    tensor_comm_s: float
    context_comm_s: float
    expert_comm_s: float
    pipeline_comm_s: float
    data_comm_s: float
    offload_s: float
    optimizer_s: float
    bubble_s: float
    other_s: float
    stragglers_s: float
    lengths_s: float
    input_s: float


class SearchPareto(Answer):
    training: Fields
    parallel: Fields
    execution: Fields
    step_s: float
    mfu: float
    bubble_frac: float
    peak_bytes: int
    reserved_bytes: float
    days: float
    gpu_hours: float
    kwh: float
    effective_days: Any
    time: SearchParetoTime


class SearchSensitivity(Answer):
    what: str
    more_frac: float
    step_s: float


class Search(Answer):
    schema: int
    scenario: str
    space: int
    pruned: SearchPruned
    limits: Fields
    evaluated: int
    survivors: int
    simulated: int
    seeds: int
    refused: int
    open: int
    loose: SearchLoose
    seconds: float
    proved: bool
    gap_frac: float
    reserve_bytes: float
    families_proved: int
    pareto_proved: bool
    pareto_simulated: int
    best: List[SearchBest]
    families: List[SearchFamilies]
    pareto: List[SearchPareto]
    nearest_misses: List[Any]
    sensitivity: List[SearchSensitivity]


class PlanStamp(Answer):
    version: str
    scenario_hash: str


class PlanAssumed(Answer):
    failures: str
    checkpoints: str
    days: str


class PlanPlansTextbook(Answer):
    parameters: int
    flops_per_s_per_gpu: float
    rate_given: bool
    gpus: Any
    gpus_rounded: Any
    at_gpus: Any
    days: Any
    attention_days: Any
    recompute_days: Any
    difference_days: Fields


class PlanPlansPoints(Answer):
    gpus: int
    reason: str


class PlanPlans(Answer):
    accelerator: str
    cluster: str
    gpus_per_node: float
    usd_per_gpu_hour: Any
    power_w_per_gpu: float
    pue: int
    answer: Any
    fastest: Any
    textbook: PlanPlansTextbook
    points: List[PlanPlansPoints]


class Plan(Answer):
    schema: int
    scenario: str
    stamp: PlanStamp
    tokens: int
    deadline_s: Any
    budget_usd: Any
    power_limit_w: Any
    partial: bool
    assumed: PlanAssumed
    rows: List[Any]
    plans: List[PlanPlans]


class ExplanationBinds(Answer):
    what: str
    step_frac: float


class ExplanationFigures(Answer):
    figure: str
    step_s: float
    gain_frac: float
    elasticity: float


class ExplanationLargestLoss(Answer):
    what: str
    step_frac: float


class ExplanationChanges(Answer):
    set: List[str]
    step_s: float
    gain_frac: float
    fits: bool
    at_the_edge: bool
    less: str


class ExplanationKernels(Answer):
    kernel: str
    kind: str
    time_frac: float
    loss_frac: float


class ExplanationCollectives(Answer):
    kernel: str
    kind: str
    time_frac: float
    loss_frac: float


class Explanation(Answer):
    schema: int
    scenario: str
    step_s: float
    mfu: float
    binds: List[ExplanationBinds]
    figures: List[ExplanationFigures]
    largest_loss: ExplanationLargestLoss
    tried: int
    changes: List[ExplanationChanges]
    kernels: List[ExplanationKernels]
    collectives: List[ExplanationCollectives]


class ComparisonA(Answer):
    file: str
    scenario: str
    scenario_hash: str
    fits: bool


class ComparisonB(Answer):
    file: str
    scenario: str
    scenario_hash: str
    fits: bool


class ComparisonSummaryGpus(Answer):
    a: int
    b: int
    difference: int


class ComparisonSummaryStepS(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryTokensPerS(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryTokensPerSPerGpu(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryMfu(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryHfu(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryBubbleFrac(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryDays(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryEffectiveDays(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryGpuHours(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummaryKwh(Answer):
    a: float
    b: float
    difference: float


class ComparisonSummary(Answer):
    gpus: ComparisonSummaryGpus
    step_s: ComparisonSummaryStepS
    tokens_per_s: ComparisonSummaryTokensPerS
    tokens_per_s_per_gpu: ComparisonSummaryTokensPerSPerGpu
    mfu: ComparisonSummaryMfu
    hfu: ComparisonSummaryHfu
    bubble_frac: ComparisonSummaryBubbleFrac
    days: ComparisonSummaryDays
    effective_days: ComparisonSummaryEffectiveDays
    gpu_hours: ComparisonSummaryGpuHours
    kwh: ComparisonSummaryKwh


class ComparisonTimeComputeS(Answer):
    a: float
    b: float
    difference: float


class ComparisonTimeRecomputeS(Answer):
    a: float
    b: float
    difference: int


class ComparisonTimeTensorCommS(Answer):
    a: float
    b: float
    difference: int


class ComparisonTimeContextCommS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTimeExpertCommS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTimePipelineCommS(Answer):
    a: float
    b: float
    difference: float


class ComparisonTimeDataCommS(Answer):
    a: float
    b: float
    difference: float


class ComparisonTimeOffloadS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTimeOptimizerS(Answer):
    a: float
    b: float
    difference: int


class ComparisonTimeBubbleS(Answer):
    a: float
    b: float
    difference: float


class ComparisonTimeOtherS(Answer):
    a: float
    b: float
    difference: int


class ComparisonTimeStragglersS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTimeLengthsS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTimeInputS(Answer):
    a: int
    b: int
    difference: int


class ComparisonTime(Answer):
    compute_s: ComparisonTimeComputeS
    recompute_s: ComparisonTimeRecomputeS
    tensor_comm_s: ComparisonTimeTensorCommS
    context_comm_s: ComparisonTimeContextCommS
    expert_comm_s: ComparisonTimeExpertCommS
    pipeline_comm_s: ComparisonTimePipelineCommS
    data_comm_s: ComparisonTimeDataCommS
    offload_s: ComparisonTimeOffloadS
    optimizer_s: ComparisonTimeOptimizerS
    bubble_s: ComparisonTimeBubbleS
    other_s: ComparisonTimeOtherS
    stragglers_s: ComparisonTimeStragglersS
    lengths_s: ComparisonTimeLengthsS
    input_s: ComparisonTimeInputS


class ComparisonMemoryWeightsBytes(Answer):
    a: int
    b: int
    difference: int


class ComparisonMemoryGradientsBytes(Answer):
    a: int
    b: int
    difference: int


class ComparisonMemoryOptimizerBytes(Answer):
    a: int
    b: int
    difference: int


class ComparisonMemoryActivationsBytes(Answer):
    a: int
    b: int
    difference: int


class ComparisonMemoryWorkspaceBytes(Answer):
    a: int
    b: int
    difference: int


class ComparisonMemoryReservedBesidesBytes(Answer):
    a: float
    b: float
    difference: float


class ComparisonMemory(Answer):
    weights_bytes: ComparisonMemoryWeightsBytes
    gradients_bytes: ComparisonMemoryGradientsBytes
    optimizer_bytes: ComparisonMemoryOptimizerBytes
    activations_bytes: ComparisonMemoryActivationsBytes
    workspace_bytes: ComparisonMemoryWorkspaceBytes
    reserved_besides_bytes: ComparisonMemoryReservedBesidesBytes


class ComparisonFields(Answer):
    key: str
    a: str
    b: str
    alone_step_s: Optional[float]
    reason: Any


class Comparison(Answer):
    schema: int
    version: str
    a: ComparisonA
    b: ComparisonB
    summary: ComparisonSummary
    time: ComparisonTime
    memory: ComparisonMemory
    fields: List[ComparisonFields]


class CampaignDays(Answer):
    mean: float
    p10: float
    p50: float
    p90: float


class CampaignGoodput(Answer):
    mean: float
    p10: float
    p50: float
    p90: float


class CampaignInterruptions(Answer):
    mean: float
    p10: float
    p50: float
    p90: float


class CampaignLost(Answer):
    stragglers_s: float
    input_s: float
    evaluation_s: float
    skipped_s: float
    checkpoint_s: float
    lost_work_s: float
    restart_s: float
    loading_s: float
    waiting_s: float
    degraded_s: float


class CampaignCheckpoint(Answer):
    mode: str
    bytes: Optional[int]
    write_s: Optional[float]
    stall_s: Optional[float]
    load_s: Optional[float]
    interval_s: Optional[float]
    young_s: Any
    daly_s: Any
    availability_s: Any
    best_interval_s: Optional[float]


class CampaignFormula(Answer):
    days: float
    goodput: float
    first_order_goodput: float


class CampaignSpareNodes(Answer):
    mean: float
    p10: float
    p50: float
    p90: float


class CampaignSparesCurve(Answer):
    spares: int
    days: float
    days_p90: float


class CampaignTimeline(Answer):
    at_s: float
    cause: str
    nodes_lost: int
    nodes_away: int
    lost_work_s: float
    waiting_s: float


class Campaign(Answer):
    schema: int
    scenario: str
    gpus: int
    replicas: int
    partial: bool
    seed: int
    step_s: float
    ideal_days: float
    days: CampaignDays
    days_standard_error: int
    goodput: CampaignGoodput
    interruptions: CampaignInterruptions
    lost: CampaignLost
    checkpoint: CampaignCheckpoint
    gpu_hours: float
    usd: Any
    kwh: float
    waiting_kwh: Optional[float]
    mtbf_s: Any
    restart_s: float
    formula: CampaignFormula
    spare_nodes: CampaignSpareNodes
    causes: List[Any]
    spares_curve: List[CampaignSparesCurve]
    timeline: List[CampaignTimeline]


class ValidationRows(Answer):
    id: str
    confidence: str
    measured_step_s: Optional[float]
    predicted_step_s: float
    error_frac: Optional[float]
    measured_memory_bytes: Optional[int]
    predicted_memory_bytes: Optional[float]
    memory_error_frac: Optional[float]
    memory_kind: Optional[str]
    inside_interval: Optional[bool]
    interval_low_s: Optional[float]
    interval_high_s: Optional[float]
    fits: bool
    skipped: Any


class ValidationSources(Answer):
    file: str
    rows: int
    skipped: int
    mape: float
    median: float
    p90: float
    worst: float
    bias: float
    kendall_tau: Optional[float]
    kendall_pairs: int
    memory_mape: Optional[float]
    interval_coverage: float
    interval_half_width: float
    full_confidence_mape: Any


class ValidationOverall(Answer):
    rows: int
    skipped: int
    mape: float
    median: float
    p90: float
    worst: float
    bias: float
    kendall_tau: Optional[float]
    kendall_pairs: int
    memory_mape: Optional[float]
    interval_coverage: float
    interval_half_width: float
    macro_mape: float
    full_confidence_mape: Any
    full_confidence_p90: Any
    experts_mape: Any
    experts_bias: Any
    adapters_mape: Any
    adapters_memory_mape: Any


class ValidationMemoryReserve(Answer):
    rows: int
    seen_covered_frac: Optional[float]
    needs: int
    covered_frac: Any
    left_out_covered_frac: Any
    does_not_fit_frac: Optional[float]
    at_the_edge_frac: Optional[float]


class Validation(Answer):
    schema: int
    rows: List[ValidationRows]
    sources: List[ValidationSources]
    overall: ValidationOverall
    leave_one_out: Any
    memory_reserve: ValidationMemoryReserve


class CollectiveNccl(Answer):
    algorithm: str
    protocol: str
    estimate_s: float
    seconds: float


class CollectiveSizesNccl(Answer):
    algorithm: str
    protocol: str
    estimate_s: float
    seconds: float


class CollectiveSizes(Answer):
    algorithm: str
    bytes: int
    step_count: int
    seconds: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    bytes_sent_per_rank: List[float]
    contention_s: float
    segments: int
    nccl: CollectiveSizesNccl


class CollectiveSteps(Answer):
    end_s: float
    messages: int
    largest_bytes: int
    bytes: int


class Collective(Answer):
    op: str
    fidelity: str
    topology: str
    routing: str
    ranks: int
    algorithm: str
    bytes: int
    step_count: int
    seconds: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    bytes_sent_per_rank: List[float]
    contention_s: float
    segments: int
    nccl: CollectiveNccl
    sizes: List[CollectiveSizes]
    proved: bool
    steps: List[CollectiveSteps]


class TraceStep(Answer):
    measured_s: float
    predicted_s: float
    error_frac: float


class TraceClasses(Answer):
    measured_s: float
    kernels: int
    busy_s: float
    predicted_s: float
    error_frac: float


class TraceWaterfall(Answer):
    part: str
    measured_s: float
    predicted_s: float
    error_frac: Optional[float]


class TraceOps(Answer):
    op: str
    measured_s: float
    kernels: int
    predicted_s: float
    error_frac: float
    predicted_kernels: int


class TraceUnmatched(Answer):
    measured_s: float
    predicted_s: float


class Trace(Answer):
    schema: int
    version: str
    device: str
    ranks: int
    steps: int
    steps_marked: bool
    step: TraceStep
    classes: List[TraceClasses]
    waterfall: List[TraceWaterfall]
    communication_s: float
    communication_beside_s: float
    ops: List[TraceOps]
    unmatched: TraceUnmatched
    error_s: float
    absolute_error_s: float
    cancelled: bool


class JobsPoliciesWaitS(Answer):
    mean: float
    p50: float
    p90: float
    most: float


class JobsPoliciesCompletionS(Answer):
    mean: float
    p50: float
    p90: float
    most: float


class JobsPolicies(Answer):
    policy: str
    utilisation: float
    makespan_s: float
    wait_s: JobsPoliciesWaitS
    completion_s: JobsPoliciesCompletionS
    fairness: float
    work_gpu_hours: float
    done_gpu_hours: float
    held_gpu_hours: float


class Jobs(Answer):
    schema: int
    jobs: int
    policies: List[JobsPolicies]


class GeneratedMemory(Answer):
    weights_bytes: int
    work_bytes: int
    cache_bytes: int
    cache_token_bytes: int
    cache_sequence_bytes: int
    cache_tokens: int


class GeneratedStep(Answer):
    products_s: float
    attention_s: float
    comm_s: float
    small_s: float
    host_s: float


class GeneratedTable(Answer):
    sequences: int
    context_tokens: int
    tokens_per_s_per_gpu: float


class Generated(Answer):
    schema: int
    version: str
    seconds: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    prefill_s: float
    decode_s: float
    tail_s: float
    steps: int
    mean_sequences: int
    most_sequences: int
    mean_context_tokens: float
    preempted: int
    memory: GeneratedMemory
    step: GeneratedStep
    table: List[GeneratedTable]
