#!/usr/bin/env python3
"""Times training steps of plain PyTorch loops on one GPU: how the rows of fourth.json and fifth.json were measured.

usage: one_gpu.py [--80] OUT.json [NAME...]     all runs (those for 80 GB), or those whose name holds a NAME

Each run is a process of its own: a Llama- or GPT-like model of nn.Linear, F.scaled_dot_product_attention and
F.cross_entropy, random tokens, torch.optim.AdamW with its defaults (foreach). `ddp` wraps it in
DistributedDataParallel under bf16 autocast over fp32 weights; `fsdp2` shards each block by fully_shard with bf16
weights and fp32 reductions; `hf` is transformers' LlamaForCausalLM in place of the model. One rank. Compiled: each
block. OUT.json: step_s, the median of single steps, each waited for; back_to_back_s, the mean of steps that follow
each other; bytes that the caching allocator had given out and reserved at most; bytes of the device in use.
"""
import json, os, signal, statistics, sys, time

MODELS = {
    "gpt2-124m": dict(layers=12, hidden=768, heads=12, kv=12, ffn=3072, vocab=50304, gated=False, norm="layernorm", tied=True),
    "gpt-1.3b": dict(layers=24, hidden=2048, heads=16, kv=16, ffn=8192, vocab=50304, gated=False, norm="layernorm", tied=True),
    "llama-1b": dict(layers=16, hidden=2048, heads=32, kv=8, ffn=8192, vocab=128256, gated=True, norm="rmsnorm", tied=True),
    "llama-3b": dict(layers=28, hidden=3072, heads=24, kv=8, ffn=8192, vocab=128256, gated=True, norm="rmsnorm", tied=True),
    "llama-8b-8l": dict(layers=8, hidden=4096, heads=32, kv=8, ffn=14336, vocab=128256, gated=True, norm="rmsnorm", tied=False),
    "qwen-1.7b": dict(layers=28, hidden=2048, heads=16, kv=8, ffn=6144, vocab=151936, gated=True, norm="rmsnorm", tied=True),
    "gpt-2.7b": dict(layers=32, hidden=2560, heads=32, kv=32, ffn=10240, vocab=50304, gated=False, norm="layernorm", tied=True),
    "llama-13b-4l": dict(layers=4, hidden=5120, heads=40, kv=40, ffn=13824, vocab=32000, gated=True, norm="rmsnorm", tied=False),
}
# name, loop, model, micro-batch, micro-batches, sequence, compiled, recompute
RUNS = [
    ("ddp", "gpt2-124m", 8, 1, 1024, False, "none"),
    ("ddp", "gpt2-124m", 32, 1, 1024, False, "none"),
    ("ddp", "gpt2-124m", 32, 1, 1024, True, "none"),
    ("ddp", "gpt2-124m", 8, 8, 1024, False, "none"),
    ("ddp", "gpt-1.3b", 2, 1, 2048, False, "none"),
    ("ddp", "gpt-1.3b", 8, 1, 2048, False, "full"),
    ("ddp", "gpt-1.3b", 4, 4, 2048, False, "none"),
    ("ddp", "llama-1b", 1, 1, 2048, False, "none"),
    ("ddp", "llama-1b", 4, 1, 4096, False, "none"),
    ("ddp", "llama-1b", 1, 1, 16384, False, "none"),
    ("ddp", "llama-1b", 4, 1, 4096, True, "none"),
    ("ddp", "llama-1b", 8, 1, 4096, False, "full"),
    ("fsdp2", "gpt2-124m", 32, 1, 1024, False, "none"),
    ("fsdp2", "gpt-1.3b", 4, 1, 2048, False, "none"),
    ("fsdp2", "llama-1b", 1, 1, 2048, False, "none"),
    ("fsdp2", "llama-1b", 4, 1, 4096, False, "none"),
    ("fsdp2", "llama-1b", 4, 1, 4096, True, "none"),
    ("fsdp2", "llama-3b", 1, 1, 4096, False, "none"),
    ("fsdp2", "llama-3b", 4, 1, 4096, False, "full"),
    ("fsdp2", "llama-3b", 1, 4, 4096, False, "none"),
    ("fsdp2", "llama-8b-8l", 1, 1, 8192, False, "none"),
    ("fsdp2", "llama-8b-8l", 2, 1, 4096, True, "none"),
    ("fsdp2", "llama-8b-8l", 2, 1, 8192, False, "full"),
    ("fsdp2", "llama-8b-8l", 1, 1, 32768, False, "full"),
]
# For GPUs of 80 GB.
RUNS_80 = [
    ("ddp", "gpt2-124m", 8, 1, 1024, False, "none"),
    ("ddp", "gpt2-124m", 32, 1, 1024, False, "none"),
    ("ddp", "gpt2-124m", 32, 1, 1024, True, "none"),
    ("ddp", "gpt2-124m", 4, 8, 1024, False, "none"),
    ("ddp", "gpt-1.3b", 4, 1, 2048, False, "none"),
    ("ddp", "gpt-1.3b", 8, 1, 2048, False, "full"),
    ("ddp", "llama-1b", 1, 1, 2048, False, "none"),
    ("ddp", "llama-1b", 2, 1, 4096, False, "none"),
    ("ddp", "llama-1b", 1, 1, 8192, False, "none"),
    ("ddp", "llama-1b", 2, 1, 4096, True, "none"),
    ("ddp", "llama-1b", 4, 1, 4096, False, "full"),
    ("fsdp2", "gpt-1.3b", 4, 1, 2048, False, "none"),
    ("fsdp2", "llama-1b", 2, 1, 4096, False, "none"),
    ("fsdp2", "llama-1b", 2, 1, 4096, True, "none"),
    ("fsdp2", "llama-3b", 1, 1, 4096, False, "none"),
    ("fsdp2", "llama-3b", 2, 1, 4096, False, "full"),
    ("fsdp2", "llama-8b-8l", 1, 1, 4096, False, "none"),
    ("fsdp2", "llama-8b-8l", 1, 1, 4096, True, "none"),
    ("fsdp2", "llama-8b-8l", 1, 1, 16384, False, "full"),
    # fifth.json:
    ("hf", "llama-1b", 2, 1, 4096, False, "none"),
    ("hf", "llama-1b", 4, 1, 4096, False, "full"),
    ("ddp", "qwen-1.7b", 2, 1, 2048, False, "none"),
    ("ddp", "llama-13b-4l", 2, 1, 4096, False, "none"),
    ("ddp", "llama-13b-4l", 2, 1, 4096, True, "none"),
    ("fsdp2", "gpt-2.7b", 2, 1, 2048, False, "none"),
    ("fsdp2", "qwen-1.7b", 2, 1, 4096, True, "none"),
    ("fsdp2", "llama-13b-4l", 1, 1, 16384, False, "none"),
    ("hf", "llama-1b", 1, 1, 2048, False, "none"),
]
def name_of(run):
    loop, model, micro, n, seq, compiled, recompute = run
    return f"{loop}-{model}-b{micro}x{n}-s{seq}" + ("-compiled" if compiled else "") + ("-full" if recompute == "full" else "")

def build(spec, seq):
    import torch
    from torch import nn
    import torch.nn.functional as F
    from torch.utils.checkpoint import checkpoint
    h, heads, kv, d = spec["hidden"], spec["heads"], spec["kv"], spec["hidden"] // spec["heads"]
    llama = spec["gated"]
    bias = not llama
    Norm = (lambda: nn.RMSNorm(h, eps=1e-5)) if spec["norm"] == "rmsnorm" else (lambda: nn.LayerNorm(h))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = Norm(), Norm()
            if llama:
                self.q, self.k, self.v = nn.Linear(h, h, bias=False), nn.Linear(h, kv * d, bias=False), nn.Linear(h, kv * d, bias=False)
                self.w1, self.w3 = nn.Linear(h, spec["ffn"], bias=False), nn.Linear(h, spec["ffn"], bias=False)
            else:
                self.qkv = nn.Linear(h, 3 * h)
                self.w1 = nn.Linear(h, spec["ffn"])
            self.o, self.w2 = nn.Linear(h, h, bias=bias), nn.Linear(spec["ffn"], h, bias=bias)

        def attention(self, x, rope):
            b, s, _ = x.shape
            if llama:
                q, k, v = self.q(x).view(b, s, heads, d), self.k(x).view(b, s, kv, d), self.v(x).view(b, s, kv, d)
                q, k = rotate(q, rope), rotate(k, rope)
                k, v = repeat(k, heads // kv), repeat(v, heads // kv)
            else:
                q, k, v = (t.view(b, s, heads, d) for t in self.qkv(x).split(h, dim=2))
            y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
            return self.o(y.transpose(1, 2).contiguous().view(b, s, h))

        def forward(self, x, rope):
            x = x + self.attention(self.n1(x), rope)
            y = self.n2(x)
            if llama:
                return x + self.w2(F.silu(self.w1(y)) * self.w3(y))
            return x + self.w2(F.gelu(self.w1(y)))

    def repeat(x, n):
        b, s, heads_, d_ = x.shape
        return x if n == 1 else x[:, :, :, None, :].expand(b, s, heads_, n, d_).reshape(b, s, heads_ * n, d_)

    def rotate(x, rope):
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * rope[None, :, None, :]).flatten(3).type_as(x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.recompute = False
            self.embed = nn.Embedding(spec["vocab"], h)
            if not llama:
                self.position = nn.Embedding(seq, h)
            self.blocks = nn.ModuleList(Block() for _ in range(spec["layers"]))
            self.norm = Norm()
            self.head = nn.Linear(h, spec["vocab"], bias=False)
            if spec["tied"]:
                self.head.weight = self.embed.weight
            f = 1.0 / (500000.0 ** (torch.arange(0, d, 2).float() / d))
            self.register_buffer("rope", torch.polar(torch.ones(seq, d // 2), torch.outer(torch.arange(seq).float(), f)), persistent=False)

        def forward(self, tokens):
            x = self.embed(tokens)
            if not llama:
                x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = checkpoint(block, x, self.rope, use_reentrant=False) if self.recompute else block(x, self.rope)
            return self.head(self.norm(x))
    return Model()

def measure(run, out):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    loop, model_name, micro, accumulate, seq, compiled, recompute = run
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    spec = MODELS[model_name]
    torch.manual_seed(0)
    if loop == "hf":
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(vocab_size=spec["vocab"], hidden_size=spec["hidden"], intermediate_size=spec["ffn"], num_hidden_layers=spec["layers"],
                             num_attention_heads=spec["heads"], num_key_value_heads=spec["kv"], max_position_embeddings=seq,
                             tie_word_embeddings=spec["tied"], use_cache=False, attn_implementation="sdpa")
        model = LlamaForCausalLM(config).float().cuda().train()
        if recompute == "full":
            model.gradient_checkpointing_enable()
    else:
        with torch.device("cuda"):
            model = build(spec, seq)
    parameters = sum(p.numel() for p in model.parameters())
    model.recompute = recompute == "full"
    if loop == "fsdp2":
        from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
        if compiled:
            for block in model.blocks:
                block.compile()
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
        wrapped = model
    else:
        if compiled:
            for block in model.blocks:
                block.compile()
        wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-5)
    tokens = [torch.randint(0, spec["vocab"], (micro, seq + 1), device="cuda") for _ in range(accumulate)]

    def micro_step(batch, last):
        if loop == "hf":
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = wrapped(input_ids=batch[:, :-1].contiguous(), labels=batch[:, :-1].contiguous()).loss
        elif loop == "ddp":
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = wrapped(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        else:
            logits = wrapped(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())
        loss.backward()
        return loss

    def step():
        for i, batch in enumerate(tokens):
            if loop != "fsdp2" and i + 1 < len(tokens):
                with wrapped.no_sync():
                    micro_step(batch, False)
            else:
                micro_step(batch, i + 1 == len(tokens))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    once = time.perf_counter() - begin
    repeats = max(5, min(40, int(2.5 / once)))
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    begin = time.perf_counter()   # back to back, as a training loop without logging runs
    for _ in range(repeats):
        step()
    torch.cuda.synchronize()
    together = (time.perf_counter() - begin) / repeats
    free, total = torch.cuda.mem_get_info()
    row = dict(name=name_of(run), run=run, parameters=parameters, repeats=repeats, step_s=statistics.median(times), back_to_back_s=together,
               quartiles=[sorted(times)[len(times) // 4], sorted(times)[3 * len(times) // 4]],
               allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), used=total - free, total=total,
               gpu=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    json.dump(row, open(out, "w"))
    dist.destroy_process_group()

def main():
    arguments = sys.argv[1:]
    runs = RUNS
    if arguments[:1] == ["--80"]:
        runs, arguments = RUNS_80, arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    out, names = arguments[0], arguments[1:]
    rows = []
    if names and not any(n in name_of(run) for run in runs for n in names):
        sys.exit(f"one_gpu.py: no run's name holds {' or '.join(names)}; they are: {', '.join(map(name_of, runs))}")
    for run in runs:
        if names and not any(n in name_of(run) for n in names):
            continue
        begin = time.time()
        row = out + ".row"
        if os.path.exists(row):
            os.remove(row)
        child = os.fork()
        if child == 0:
            signal.alarm(150)
            try:
                measure(run, row)
            except BaseException as e:
                json.dump(dict(name=name_of(run), run=run, error=(str(e).splitlines() or ["?"])[0][:300]), open(row, "w"))
            os._exit(0)
        os.waitpid(child, 0)
        rows.append(json.load(open(row)) if os.path.exists(row) else dict(name=name_of(run), run=run, error="timeout"))
        r = rows[-1]
        print(f"{r['name']:44s} {r.get('step_s', 0)*1e3:9.2f} ms {r.get('back_to_back_s', 0)*1e3:9.2f} {r.get('allocated', 0)/2**30:6.1f} {r.get('reserved', 0)/2**30:6.1f} GiB  {time.time()-begin:5.1f} s  {r.get('error', '')}", flush=True)
        json.dump(rows, open(out, "w"), indent=1)
    if os.path.exists(out + ".row"):
        os.remove(out + ".row")

if len(sys.argv) > 1 and not sys.argv[-1].startswith("-"):
    try:
        import torch  # once, before the forks; CUDA begins in each child
    except ModuleNotFoundError:
        sys.exit("one_gpu.py: PyTorch is not installed for this Python; run it with one that has it")

main()
