// Declarations of the passes, one file each; pipeline.cc puts them in order.
#pragma once
#include "graph/pass.h"

namespace anabranch {
extern const Pass kFuseEmbeddings;
extern const Pass kFoldConstants;
extern const Pass kRemoveCopies;
extern const Pass kRemoveDead;
extern const Pass kShapeReads;
extern const Pass kBlockedLayout;
extern const Pass kChannelsLast;
extern const Pass kBfloat16Products;
extern const Pass kFuseAttention;
extern const Pass kFuseBnAct;
extern const Pass kFuseConv;
extern const Pass kFuseFc;
extern const Pass kFuseLayerNorm;
extern const Pass kFuseQuantized;
extern const Pass kFuseRecurrent;
extern const Pass kFuseSequenceSteps;
extern const Pass kFuseUnrolled;
extern const Pass kFuseElementwise;
extern const Pass kFuseOptimizers;
extern const Pass kRawGradients;
extern const Pass kSyncBatchNorm;
extern const Pass kUpdatesLast;
extern const Pass kProgramOrder;
extern const Pass kShareSumGradients;
extern const Pass kSumSliceGradients;
extern const Pass kFuseAllReduce;
extern const Pass kMixedPrecision;
extern const Pass kStraightenBlocks;
extern const Pass kPlaceOnDevices;
extern const Pass kReuseInput;
}  // namespace anabranch
