// Weights of the replicas' loss gradients. The update of N replicas equals the serial one if each mean over the batch
// counts its own share: replica r's gradient of mean(x) is weighted by the number of elements of x on r relative to
// that on all replicas. The means are found by walking back from the loss through scale, cast and sums. A program may
// have several losses; each has a seed op, which starts its gradient ops.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

struct LossBranch {
  std::string gradient;  // of the value whose gradient is weighted, by its name after this seed op
  std::string counted;   // the input of its mean; empty: no mean, every active replica has the same weight
  int made_by = -1;      // the op that writes the gradient last: the seed op itself if the loss is the only branch
};

bool is_loss_seed(const ir::Op& op);

// The branches of each loss, by the index of its seed op. One branch without a mean for the loss itself if the
// structure is not understood (for instance a value that is used twice).
std::map<int, std::vector<LossBranch>> loss_branches(const ir::Block& block);

}  // namespace anabranch
