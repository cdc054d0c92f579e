export CUDA_DEVICE_MAX_CONNECTIONS=32
MEGATRON_ARGS=(
    --num-layers 4
    --hidden-size 64
    --num-attention-heads 4
    --vocab-size 1000
    --max-position-embeddings 128
    --seq-length 128
    --micro-batch-size 1
    --global-batch-size 8
    --use-distributed-optimizer
    --use-megatron-fsdp
    --data-parallel-sharding-strategy optim_grads_params
    --ckpt-format fsdp_dtensor
    --no-gradient-accumulation-fusion
    --num-distributed-optimizer-instances 2
    --train-iters 100  # placeholder: give your own
    --lr 1.0e-4  # placeholder: give your own
    --unknown-flag 7
    --bf16
)
