// Sums over workers, in the order of workers for any order of arrival: the additions that all_reduce does for replicas
// of one process, so that both give the same bits.
#pragma once
#include <vector>

#include "ps/names.h"
#include "ps/store.h"

namespace anabranch::ps {

// The contribution of one worker's message to a variable.
struct Contribution {
  MessageRef message;
  int part = -1;  // of the dense tensor, or of the values of rows
  bool sparse = false;
};

// *sum += the numbers of a tensor of the same shape.
void add_tensor(Tensor* sum, const char* payload);

class Sum {
 public:
  // InvalidArgument if contributions disagree in kind, dtype or shape. The result is valid until the next call.
  Change of(uint32_t variable, const std::vector<Contribution>& contributions);

 private:
  void add(const std::vector<Contribution>& contributions, Change* out);
  void join(const std::vector<Contribution>& contributions, Change* out);

  Tensor dense_, joined_;
  SelectedRows rows_;
};

}  // namespace anabranch::ps
