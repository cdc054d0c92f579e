/* tests/simgrid/replay.cpp - a collective's messages replayed by SimGrid, for tests/simgrid/test_simgrid.c.
 *
 * Reads a file: ranks, steps, links; each link's rate in bytes/s; the number of messages; of each its step,
 * sender, receiver, bytes, latency in seconds, hops and links. A rank begins a step when all that it sent and got in the
 * steps before is through, a message when both its ends are in its step. Prints the seconds of the whole. Latencies are slept before a flow begins and links have
 * none: SimGrid would weigh flows by the latency of their route.
 */
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

struct Message {
    int step, from, to;
    double bytes, latency_s;
    std::vector<int> links;
};

static std::vector<Message> messages;
static std::vector<std::vector<std::vector<int>>> sent_in; /* [rank][step] */
static std::vector<std::vector<int>> expected;             /* [rank][step] */
static std::vector<std::vector<sg4::SemaphorePtr>> through, there; /* there: a receiver is in the step */
static std::vector<std::vector<int>> sent_to;                      /* [rank][step] */
static std::vector<sg4::Host *> ends; /* two a message, so that each has a route of its own */

static void carry(int index)
{
    const Message &m = messages[static_cast<size_t>(index)];
    there[static_cast<size_t>(m.to)][static_cast<size_t>(m.step)]->acquire();
    sg4::this_actor::sleep_for(m.latency_s);
    if (m.bytes > 0 && !m.links.empty())
        sg4::Comm::sendto(ends[2 * static_cast<size_t>(index)], ends[2 * static_cast<size_t>(index) + 1],
                          static_cast<uint64_t>(m.bytes));
    through[static_cast<size_t>(m.from)][static_cast<size_t>(m.step)]->release();
    through[static_cast<size_t>(m.to)][static_cast<size_t>(m.step)]->release();
}

static void rank_body(int rank)
{
    const auto r = static_cast<size_t>(rank);
    for (size_t step = 0; step < expected[r].size(); step++) {
        for (int i = 0; i < sent_to[r][step]; i++)
            there[r][step]->release();
        for (int index : sent_in[r][step])
            sg4::Actor::create("message", sg4::this_actor::get_host(), carry, index);
        for (int i = 0; i < expected[r][step]; i++)
            through[r][step]->acquire();
    }
}

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    sg4::Engine::set_config("network/model:CM02");
    sg4::Engine::set_config("network/TCP-gamma:0");
    sg4::Engine::set_config("network/crosstraffic:0");
    sg4::Engine::set_config("network/weight-S:0");
    sg4::Engine::set_config("network/bandwidth-factor:1");
    sg4::Engine::set_config("network/latency-factor:1");
    sg4::Engine::set_config("surf/precision:1e-12");
    sg4::Engine::set_config("contexts/stack-size:64");
    std::ifstream input(argc > 1 ? argv[1] : "");
    size_t ranks = 0, steps = 0, link_count = 0, message_count = 0;
    input >> ranks >> steps >> link_count;
    auto *zone = sg4::create_full_zone("fabric");
    std::vector<sg4::Link *> links;
    for (size_t l = 0; l < link_count; l++) {
        double rate = 0;
        input >> rate;
        links.push_back(zone->create_link("l" + std::to_string(l), rate)->seal());
    }
    input >> message_count;
    sent_in.assign(ranks, std::vector<std::vector<int>>(steps));
    expected.assign(ranks, std::vector<int>(steps, 0));
    sent_to.assign(ranks, std::vector<int>(steps, 0));
    through.resize(ranks);
    there.resize(ranks);
    auto *nowhere = zone->create_host("ranks", 1e9)->seal();
    for (size_t i = 0; i < message_count; i++) {
        Message m;
        size_t hops = 0;
        input >> m.step >> m.from >> m.to >> m.bytes >> m.latency_s >> hops;
        std::vector<sg4::LinkInRoute> route;
        for (size_t h = 0; h < hops; h++) {
            int l = 0;
            input >> l;
            m.links.push_back(l);
            route.emplace_back(links[static_cast<size_t>(l)]);
        }
        auto *a = zone->create_host("a" + std::to_string(i), 1e9)->seal();
        auto *b = zone->create_host("b" + std::to_string(i), 1e9)->seal();
        ends.push_back(a);
        ends.push_back(b);
        if (hops > 0)
            zone->add_route(a->get_netpoint(), b->get_netpoint(), nullptr, nullptr, route, false);
        sent_in[static_cast<size_t>(m.from)][static_cast<size_t>(m.step)].push_back(static_cast<int>(i));
        expected[static_cast<size_t>(m.from)][static_cast<size_t>(m.step)]++;
        expected[static_cast<size_t>(m.to)][static_cast<size_t>(m.step)]++;
        sent_to[static_cast<size_t>(m.to)][static_cast<size_t>(m.step)]++;
        messages.push_back(m);
    }
    zone->seal();
    for (size_t r = 0; r < ranks; r++) {
        for (size_t s = 0; s < steps; s++) {
            through[r].push_back(sg4::Semaphore::create(0));
            there[r].push_back(sg4::Semaphore::create(0));
        }
        sg4::Actor::create("rank", nowhere, rank_body, static_cast<int>(r));
    }
    engine.run();
    std::printf("%.15g\n", sg4::Engine::get_clock());
    return 0;
}
