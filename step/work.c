/* step/work.c - seconds and bytes of the cost model as works of a program. */
#include <math.h>

#include "costmodel/learned.h"
#include "step/fill.h"

int64_t step_bytes(double bytes)
{
    return (int64_t)llround(fmin(bytes, 8e18));
}

void step_add_time(SimWork *work, const CostTime *time, SimPart compute_part)
{
    sim_work_spend(work, compute_part, sim_ps(time->compute_s));
    sim_work_spend(work, SIM_PART_TENSOR_COMM, sim_ps(time->comm_s[COST_COMM_TENSOR]));
    sim_work_spend(work, SIM_PART_CONTEXT_COMM, sim_ps(time->comm_s[COST_COMM_CONTEXT]));
    sim_work_spend(work, SIM_PART_EXPERT_COMM, sim_ps(time->comm_s[COST_COMM_EXPERT]));
    sim_work_spend(work, SIM_PART_OTHER, sim_ps(time->host_s));
    work->scale_up_bytes = sim_sum(work->scale_up_bytes, step_bytes(time->scale_up_bytes));
    work->scale_out_bytes = sim_sum(work->scale_out_bytes, step_bytes(time->scale_out_bytes));
}

/* Works that follow each other as one op hold the larger of both shares; of two networks the outer one. */
static void add_share(SimWork *sum, const SimShare *share)
{
    for (int i = 0; i < SIM_WORK_SHARES && sum->shares[i].amount > 0; i++) {
        SimShare *own = &sum->shares[i];
        const bool networks = step_is_network(own->resource) && step_is_network(share->resource);
        if (own->resource == share->resource || networks) {
            own->amount = MAX(own->amount, share->amount);
            own->resource = MAX(own->resource, share->resource);
            return;
        }
    }
    sim_work_hold(sum, share->resource, (SimShareMode)share->mode, share->amount);
}

void step_add_work(SimWork *sum, const SimWork *term)
{
    const SimShare *share;
    sim_work_add(sum, term);
    for (int i = 0; (share = sim_work_share(term, i)) != NULL; i++) {
        add_share(sum, share);
    }
}

const SimShare *step_network_share(const SimWork *work)
{
    const SimShare *share;
    for (int i = 0; (share = sim_work_share(work, i)) != NULL && !step_is_network(share->resource); i++) {
    }
    return share;
}

static void hold_part(SimWork *work, int resource, SimShareMode mode, double frac)
{
    const int64_t amount = lround(SIM_WHOLE_RESOURCE * frac);
    if (amount > 0) {
        sim_work_hold(work, resource, mode, amount);
    }
}

SimWork step_collective(const Spec *spec, const CostCollective *collective, SimPart part)
{
    SimWork work = {0};
    if (collective->group.ranks < 2 || collective->bytes <= 0) {
        return work;
    }
    const CostTraffic traffic = cost_collective_traffic(collective);
    const double seconds =
        cost_learned_collective_frac(spec, collective->op) * cost_collective_s(&spec->cluster, collective);
    const bool across = collective->group.per_domain < collective->group.ranks;
    const double bytes = across ? traffic.scale_out_bytes : traffic.scale_up_bytes;
    const double rate =
        across ? spec->cluster.scale_out_bytes_per_s_per_gpu : spec->cluster.scale_up_bytes_per_s;
    work.part_ps[part] = sim_ps(seconds);
    work.scale_up_bytes = step_bytes(traffic.scale_up_bytes);
    work.scale_out_bytes = step_bytes(traffic.scale_out_bytes);
    const double used = fmin(1, rate > 0 && seconds > 0 ? bytes / (seconds * rate) : 1);
    hold_part(&work, across ? SIM_RESOURCE_SCALE_OUT : SIM_RESOURCE_SCALE_UP, SIM_SHARE_FAIR, used);
    hold_part(&work, SIM_RESOURCE_SM, SIM_SHARE_RESERVED,
              cost_collective_sm_frac(&spec->cluster, collective));
    return work;
}
