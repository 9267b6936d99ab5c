// Weights of the replicas' loss gradients. The update of N replicas equals the serial one when each mean over the batch
// counts its own share: replica r's gradient of mean(x) is weighted by the elements of x on r over those of all
// replicas. The means are found by walking back from the loss through scale, cast and sums.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

struct LossBranch {
  std::string var;      // the value whose gradient is weighted
  std::string counted;  // the input of its mean; empty: no mean, every active replica weighs the same
};

// The branches of a loss. One branch without a mean for the loss itself when the structure is not understood (a value
// that is used twice, say).
std::vector<LossBranch> loss_branches(const ir::Block& block, const std::string& loss);

}  // namespace anabranch
