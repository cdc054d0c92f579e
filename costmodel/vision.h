/* costmodel/vision.h - a vision tower before the language model: what it counts, and what it runs beside the embedding.
 *
 * Patches [patches, values] become rows [patches, hidden] by one product; layers follow, whose attention masks nothing and
 * may see windows; the projector joins neighbouring rows and makes tokens of them, which take the places of image tokens in
 * the sequence. All of it is of the first pipeline stage and of the piece before the first layer. Tensor ranks share the
 * tower's layers as they do the language model's, and each has all of patches' product and projector. It runs in 16 bits
 * whatever the language model's products are in.
 * FLOPs of one image forward, p patches of v values, width w, MLP f: 2 p v w, then a layer 8 p w^2 + 4 p s w + 4 p w f (6 where
 * gated) with s patches seen.
 * Source of the shapes: [Dosovitskiy2020]; [Qwen25VL]; [LLaVA15]
 * Ignores: positions of the tower; that sharded training gathers it layer by layer; that images differ in size.
 * Tested: unit/costmodel/test_vision.c
 */
#ifndef ORR_COSTMODEL_VISION_H
#define ORR_COSTMODEL_VISION_H

#include "costmodel/ops.h"
#include "costmodel/params.h"

/* Behind the embedding's ops: those of the tower and of the projector for the images of a micro-batch; nothing without images.
 */
void cost_push_vision(const CostShape *shape, CostGraph *graph);

#endif
