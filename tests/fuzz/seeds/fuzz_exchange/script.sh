#!/bin/bash
#SBATCH --nodes=4
GPUS=${GPUS:-8}
NODES=$SLURM_NNODES
LAYERS=24
MODEL=(
  --num-layers $LAYERS --hidden-size 2048
  --num-attention-heads 16 # heads
  "--fp8-format hybrid"
)
MODEL+=("${MORE[@]}")
WORK=" \
  --micro-batch-size 1 \
  --global-batch-size $((GPUS * NODES * 2)) \
  --pp-partition-method 'type:transformer|embedding' \
  "
cat <<EOT > config.json
{ "note": "it's --bf16" }
EOT
if [[ "$X" == "y" ]]; then echo "no"; fi
torchrun --nproc_per_node $GPUS --nnodes $NODES pretrain_gpt.py ${MODEL[@]} $WORK \
  --tensor-model-parallel-size 2 --sequence-parallel $EXTRA 2>&1 | tee log.txt
