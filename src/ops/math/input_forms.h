// How the inputs of a TileProgram broadcast to its results: whole, or repeated by a Spread.
#pragma once
#include <vector>

#include "opdef/kernel_context.h"
#include "ops/math/tile_program.h"

namespace anabranch::math {

class InputForms {
 public:
  struct Form {
    bool smaller = false;
    Spread spread;  // of smaller inputs
  };

  explicit InputForms(const TileProgram& program);
  // For the current shapes. False if results differ in shape, or a tensor is broadcast in any other way.
  bool lay(const KernelContext& c);
  const Form& operator[](int input) const { return forms_[static_cast<size_t>(input)]; }
  int smaller() const { return smaller_; }  // number of smaller inputs

 private:
  struct Use {
    bool used = false;
    bool whole_only = false;  // a step requires the shape of the results
    int axis = -1;            // broadcast axis if it is smaller
  };
  void note(const TileStep& step, size_t arg);

  size_t outs_;
  int smaller_ = 0;
  std::vector<Use> uses_;
  std::vector<Form> forms_;
};

}  // namespace anabranch::math
