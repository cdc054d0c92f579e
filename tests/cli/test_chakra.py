#!/usr/bin/env python3
"""Chakra traces that `run --chakra` writes, read by a decoder of their own.

    test_chakra.py ORRERY SOURCE

Files of all ranks are played: every message is received once with its bytes, members of a group meet in the same
collectives in the same order, and nobody waits for ever. With MLCommons' own reader (package chakra) the same bytes are
parsed by it as well (installed.py may install it).
"""
import json
import os
import subprocess
import sys
import tempfile

import installed

PACKAGES = "--no-deps", "protobuf", "chakra @ git+https://github.com/mlcommons/chakra"
et_def_pb2 = installed.module("chakra.schema.protobuf.et_def_pb2", *PACKAGES)
protolib = et_def_pb2 and installed.module("chakra.src.third_party.utils.protolib", *PACKAGES)

ORRERY = sys.argv[1]
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(field, number or bytes) of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        yield key >> 3, value


def messages(data):
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        assert at + length <= len(data)
        yield data[at:at + length]
        at += length


def attribute(data):
    parts = dict(fields(data))
    name = parts.pop(1).decode()
    (field, value), = parts.items()
    assert field == {"is_cpu_op": 27, "pg_name": 29, "comm_size": 9, "comm_type": 9}.get(name, 7), (name, field)
    return name, value.decode() if field == 29 else value


def read(path):
    with open(path, "rb") as file:
        header, *rest = messages(file.read())
    assert dict(fields(header)) == {1: b"0.0.4"}
    nodes = []
    for data in rest:
        node = {"id": 0, "deps": [], "micros": 0, "attrs": {}}
        for field, value in fields(data):
            if field == 5:
                at = 0
                while at < len(value):
                    dep, at = varint(value, at)
                    node["deps"].append(dep)
            elif field == 10:
                name, value = attribute(value)
                assert name not in node["attrs"]
                node["attrs"][name] = value
            else:
                node[{1: "id", 2: "name", 3: "type", 7: "micros"}[field]] = value
        nodes.append(node)
    check_classes(path, nodes)
    return nodes


def check_classes(path, nodes):
    if protolib is None:
        return
    with open(path, "rb") as file:
        _, *rest = messages(file.read())
    file, header = protolib.openFileRd(path), et_def_pb2.GlobalMetadata()
    assert protolib.decodeMessage(file, header) and header.version == "0.0.4"
    for node, data in zip(nodes, rest, strict=True):
        theirs = et_def_pb2.Node()
        assert protolib.decodeMessage(file, theirs)
        assert (theirs.id, theirs.name, theirs.type, theirs.duration_micros, list(theirs.data_deps)) == (
            node["id"], node["name"].decode(), node["type"], node["micros"], node["deps"])
        assert theirs.SerializeToString(deterministic=True) == data
        assert {a.name: getattr(a, a.WhichOneof("value")) for a in theirs.attr} == {
            name: bool(value) if name == "is_cpu_op" else value for name, value in node["attrs"].items()}
    assert not protolib.decodeMessage(file, et_def_pb2.Node())
    file.close()


def write(folder, scenario, *flags):
    done = subprocess.run([ORRERY, "run", scenario, "--format", "json", "--chakra", folder, *flags],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Player:
    """Plays the files of all ranks as ASTRA-sim's feeder gives them out: by number, once all that comes before is done.
    Computing takes its time, communication none."""

    def __init__(self, files, groups):
        self.files, self.groups = files, groups
        self.done = {rank: {} for rank in files}  # node -> end
        self.sent, self.taken, self.arrived = {}, set(), {}
        self.turn = {}  # (rank, group) -> collectives begun

    def members(self, group):
        return sorted(self.files) if group == "0" else self.groups[group]

    def ends(self, rank, node, ready):
        attrs = node["attrs"]
        if node["type"] == COMPUTE:
            return ready + node["micros"]
        if node["type"] == SEND:
            key = attrs["comm_src"], attrs["comm_dst"], attrs["comm_tag"]
            assert key[0] == rank and key[1] != rank and key not in self.sent, (rank, node)
            self.sent[key] = ready, attrs["comm_size"]
            return ready
        if node["type"] == RECEIVE:
            key = attrs["comm_src"], attrs["comm_dst"], attrs["comm_tag"]
            assert key[1] == rank and key not in self.taken
            if key not in self.sent:
                return None
            self.taken.add(key)
            assert self.sent[key][1] == attrs["comm_size"]
            return max(ready, self.sent[key][0])
        assert node["type"] == COLLECTIVE
        group = attrs["pg_name"]
        members = self.members(group)
        assert rank in members and len(members) > 1, (rank, group, members)
        if (rank, node["id"]) not in self.turn:
            count = self.turn[rank, group] = self.turn.get((rank, group), 0) + 1
            self.turn[rank, node["id"]] = group, count
        key = self.turn[rank, node["id"]]
        there = self.arrived.setdefault(key, {})
        there[rank] = ready, attrs["comm_type"], attrs["comm_size"], node["name"]
        if len(there) < len(members):
            return None
        assert len({what[1:] for what in there.values()}) == 1, (key, there)
        return max(what[0] for what in there.values())

    def play(self):
        waiting = {rank: list(nodes) for rank, nodes in self.files.items()}
        moved = True
        while moved:
            moved = False
            for rank, nodes in waiting.items():
                done, left = self.done[rank], []
                for node in nodes:
                    ready = [done.get(dep) for dep in node["deps"]]
                    end = None if None in ready else self.ends(rank, node, max(ready, default=0))
                    if end is None:
                        left.append(node)
                    else:
                        done[node["id"]] = end
                        moved = True
                waiting[rank] = left
        assert not any(waiting.values()), {rank: nodes[:2] for rank, nodes in waiting.items() if nodes}
        assert self.taken == set(self.sent)
        return max(max(done.values()) for done in self.done.values())


def check(scenario, *sets):
    flags = [word for one in sets for word in ("--set", one)]
    with tempfile.TemporaryDirectory() as folder:
        report = write(folder + "/all", scenario, "--unfold", *flags)
        write(folder + "/one", scenario, *flags)
        with open(folder + "/all/step.json") as file:
            groups = json.load(file)
        with open(folder + "/all/step.ranks.json") as file:
            ranks = json.load(file)["written"]
        files = {rank: read(f"{folder}/all/step.{rank}.et") for rank in ranks}
        with open(folder + "/one/step.ranks.json") as file:
            folded = json.load(file)["written"]
        for rank in folded:
            assert plain(read(f"{folder}/one/step.{rank}.et")) == plain(files[rank])
    for rank, nodes in files.items():
        assert [node["id"] for node in nodes] == list(range(len(nodes)))
        assert all(dep < node["id"] for node in nodes for dep in node["deps"])
    assert all(len(set(members)) == len(members) for members in groups.values())
    step = Player(files, groups).play() * 1e-6
    kinds = {node["attrs"].get("comm_type") for nodes in files.values() for node in nodes}
    # All computing is in the files, though not what communication beside it slows; and without the time of
    # communication no step is longer than the simulated one.
    busy = report["time"]["compute_s"]
    assert busy * 0.95 <= step <= report["step_s"] * 1.001, (scenario, sets, busy, step, report["step_s"])
    return len(files), kinds


def check_experts(scenario):
    """Four layers of Mixtral 8x7B over 4 replicas, experts over pairs of them: what is dense is reduced among four ranks,
    experts among two."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, scenario, "--set", 'model={"preset":"mixtral-8x7b","layers":4}', "--set", "parallel.pipeline=1",
              "--set", "parallel.tensor=1", "--set", "parallel.data=4", "--set", "parallel.expert=2",
              "--set", "parallel.zero=0", "--set", "cluster.gpus_per_node=4")
        with open(folder + "/step.json") as file:
            groups = json.load(file)
        put_in = {}
        for node in read(folder + "/step.0.et"):
            if node["type"] == COLLECTIVE and node["attrs"]["comm_type"] == 0 and node["attrs"]["comm_size"] > 1 << 20:
                members = groups.get(node["attrs"]["pg_name"]) or [0, 1, 2, 3]
                put_in[len(members)] = put_in.get(len(members), 0) + node["attrs"]["comm_size"]
    hidden, inner, vocabulary = 4096, 14336, 32000
    dense = 4 * (2 * hidden * hidden + 2 * hidden * 1024 + 8 * hidden + 2 * hidden) + 2 * vocabulary * hidden + hidden
    experts = 4 * 4 * 3 * hidden * inner
    assert set(put_in) == {4, 2}, put_in
    width = put_in[2] / experts
    assert min(abs(width - 2), abs(width - 4)) < 1e-4, width
    assert abs(put_in[4] / (width * dense) - 1) < 1e-4, (put_in, dense * width)


def plain(nodes):
    """Without the numbers of groups, which count from the first one that was asked for."""
    return [(n["id"], n["name"], n["type"], n["deps"], n["micros"],
             sorted((k, v) for k, v in n["attrs"].items() if k != "pg_name")) for n in nodes]


def main():
    small = {"model": {"preset": "llama3-8b", "layers": 4}, "cluster": {"preset": "dgx-h100", "nodes": 1},
             "training": {"global_batch": 12, "micro_batch": 1, "sequence_length": 2048},
             "parallel": {"pipeline": 2, "tensor": 2, "data": 2, "zero": 1}}
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/small.json"
        with open(path, "w") as file:
            json.dump(small, file)
        count, kinds = check(path)
        assert count == 8 and {0, 2} <= kinds and None in kinds, kinds
        check(path, "parallel.schedule=interleaved", "parallel.virtual_stages=2", "parallel.zero=0")
        check(path, "parallel.pipeline=1", "parallel.tensor=1", "parallel.data=4", "cluster.nodes=1", "cluster.gpus_per_node=4", "parallel.zero=3",
              "execution.framework=torchtitan")
        check(path, "parallel.context=2", "parallel.data=1")
        check(path, "parallel.schedule=zb-h1", "parallel.tensor=1", "parallel.data=4", "parallel.zero=0")
        count, kinds = check(path, 'model={"preset":"mixtral-8x7b","layers":4}', "parallel.tensor=1", "parallel.data=4",
                             "parallel.expert=2")
        assert 6 in kinds, kinds
        check_experts(path)
        for word, flag in (("offload", "offload=optimizer"), ("kinds", 'execution.measured_passes={"passes":[{"stage":0,"forward_s":0.1}]}')):
            done = subprocess.run([ORRERY, "run", path, "--chakra", folder + "/none", "--set", flag],
                                  capture_output=True, text=True)
            assert done.returncode == 2 and "a Chakra trace has no nodes for" in done.stderr and word in done.stderr, done
            assert not os.listdir(folder + "/none")
    print("chakra: all files are played to their ends" +
          ("; the package chakra is not here, so its classes did not read them" if protolib is None else ""))


main()
