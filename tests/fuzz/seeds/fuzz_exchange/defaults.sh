: "${TP:=4}" ${PP=2}
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length ${SEQ:-128} \
  --tensor-model-parallel-size ${TP:?no} --pipeline-model-parallel-size ${PP:+2} --micro-batch-size 1 --bf16
