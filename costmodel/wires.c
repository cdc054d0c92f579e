/* costmodel/wires.c - see wires.h. */
#include "costmodel/wires.h"

#include <math.h>

static int domain_of(const SpecCluster *cluster)
{
    return cluster->scale_up_domain_gpus > 0 ? cluster->scale_up_domain_gpus : cluster->gpus_per_node;
}

/* GPUs of the square that a torus of two dimensions is, a group's chips being a part of it. */
static double square_of(const SpecCluster *cluster)
{
    return MAX(cluster->accelerator.reference_scale_up_domain_gpus, domain_of(cluster));
}

/* Of the 4 links of a chip in a rectangle of `ranks` as near to a square as powers of two allow: 2 along a side as long as
 * the square that it is part of, which wraps around; else 1, for the chip at the end of a line has one neighbour.
 * Source: [CloudTpu], [ScalingBook] */
static double square_share(double ranks, double square)
{
    const double longer = exp2(ceil(log2(MAX(ranks, 1)) / 2)), shorter = ceil(ranks / longer),
                 side = sqrt(square);
    const int links = (longer >= side ? 2 : 1) + (shorter >= side ? 2 : (shorter > 1 ? 1 : 0));
    return links / 4.0;
}

double cost_wires_share(const SpecCluster *cluster, const SpecCollectiveModel *model, double ranks)
{
    /* Directed rings over the first n GPUs of DGX-1's cube mesh, of the 6 links a GPU: edge-disjoint Hamiltonian
     * cycles of the wiring 0-1 0-2 0-3x2 0-4x2 1-2x2 1-3 1-5x2 2-3x2 2-6 3-7 and its mirror. */
    static const double cube_mesh_rings[] = {6, 6, 1, 2, 4, 2, 2, 4, 6};
    const int domain = domain_of(cluster);
    switch (cluster->topology) {
    case SPEC_TOPOLOGY_CUBE_MESH:
        return cube_mesh_rings[MIN((int)ceil(ranks), 8)] / 6;
    case SPEC_TOPOLOGY_MESH: /* a link to each other GPU of the domain; alone in it: one link, to copy over */
        return domain > 2 ? MIN(MAX(ranks - 1, 1) / (domain - 1), 1) : 1;
    case SPEC_TOPOLOGY_TORUS3D: /* groups fill an edge, a face, then a cube of 4 x 4 x 4: 2, 4, 6 of 6 links */
        return ranks <= 4 ? 1.0 / 3 : (ranks <= 16 ? 2.0 / 3 : 1);
    case SPEC_TOPOLOGY_TORUS2D:
        return square_share(ranks, square_of(cluster));
    default:
        return ranks > 2 ? pow(2 / ranks, model->share_exponent) : 1;
    }
}

/* Halves of a line, rectangle or block of `ranks` whose longest side is `side`: chips / side lines lead from one to the
 * other, each twice where they wrap around, of `links` of a chip. */
static double halves_s(double ranks, double side, bool wraps, int links)
{
    return links * ranks * side / (wraps ? 8 : 4);
}

double cost_wires_cut_s(const SpecCluster *cluster, double ranks)
{
    /* Of the wiring of DGX-1, the most that a part of the first n GPUs sends over its links to the others, in sixths. */
    static const double cube_mesh[] = {0, 0, 1, 1, 0.8, 2, 2, 2.4, 8.0 / 3};
    double side = 0;
    switch (cluster->topology) {
    case SPEC_TOPOLOGY_CUBE_MESH:
        return 6 * cube_mesh[MIN((int)ceil(ranks), 8)];
    case SPEC_TOPOLOGY_TORUS3D:
        side = ranks <= 64 ? MIN(ranks, 4) : 4 * exp2(ceil(log2(ranks / 64) / 3));
        return halves_s(ranks, side, side >= 4, 6);
    case SPEC_TOPOLOGY_TORUS2D:
        side = exp2(ceil(log2(MAX(ranks, 1)) / 2));
        return halves_s(ranks, side, side * side >= square_of(cluster), 4);
    default: /* every GPU's own links are the narrow ones */
        return 0;
    }
}
