# Megatron-LM: torchrun ... pretrain_gpt.py "${MEGATRON_ARGS[@]}"; written by orrery 0.1.0
# orrery-scenario: {"name":"GPT-3 175B on 1,024 A100s, interleaved schedule with three virtual stages","model":"gpt3-175b","cluster":{"preset":"dgx-a100-80gb","nodes":128},"training":{"tokens":300000000000},"parallel":{"data":16,"expert":1},"execution":{"framework":"megatron-core","attention":"flash2","overlap":["grad_reduce","param_gather"]}}
MEGATRON_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --ffn-hidden-size 49152
    --num-attention-heads 96
    --num-query-groups 96
    --kv-channels 128
    --max-position-embeddings 2048
    --vocab-size 51200
    --seq-length 2048
    --micro-batch-size 1
    --global-batch-size 1536
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 8
    --context-parallel-size 1
    --hidden-dropout 0.10000000000000001
    --attention-dropout 0.10000000000000001
    --normalization LayerNorm
    --position-embedding-type learned_absolute
    --no-overlap-p2p-communication
    --num-virtual-stages-per-pipeline-rank 3
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
    --optimizer adam
    --attention-backend flash
    --train-samples 146484375
    --tokenizer-type NullTokenizer
    --mock-data
    --lr 1.0e-4
    --bf16
    --recompute-granularity selective
    --recompute-modules core_attn
)
