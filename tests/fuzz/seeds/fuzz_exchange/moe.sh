pretrain_gpt.py --num-layers 61 --num-experts 256 --moe-router-topk 8 --moe-layer-freq '([0]*3+[1]*58)'
 --pipeline-model-parallel-layout 'Et*3|(tt|)*2,t*2mL' --pipeline-model-parallel-size 2
