// How the inputs of a TileProgram are laid on the elements of its results: whole, or repeated by a Spread.
#pragma once
#include <vector>

#include "opdef/kernel_context.h"
#include "ops/math/tile_program.h"

namespace anabranch::math {

class InputForms {
 public:
  struct Form {
    bool smaller = false;
    Spread spread;  // of those that are smaller
  };

  explicit InputForms(const TileProgram& program);
  // For the present shapes. False when results differ in shape, or a tensor is laid on another one in any other way.
  bool lay(const KernelContext& c);
  const Form& operator[](int input) const { return forms_[static_cast<size_t>(input)]; }
  int smaller() const { return smaller_; }  // how many are

 private:
  struct Use {
    bool used = false;
    bool whole_only = false;  // a step wants it in the shape of the results
    int axis = -1;            // where it is laid when it is smaller
  };
  void note(const TileStep& step, size_t arg);

  size_t outs_;
  int smaller_ = 0;
  std::vector<Use> uses_;
  std::vector<Form> forms_;
};

}  // namespace anabranch::math
