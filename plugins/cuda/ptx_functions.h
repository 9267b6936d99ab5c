// Functions that nvcc has compiled to PTX. Kernels that are generated for a program contain them as text, because the
// driver's compiler does not inline calls.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../failure.h"

namespace anabranch::cuda {

using namespace plugin;

class PtxFunctions {
 public:
  // Internal if the text is not in nvcc's expected form.
  explicit PtxFunctions(std::string_view text);

  size_t length(const std::string& name) const;  // approximate length of the function's text
  // The header of a module: version, GPUs, and constants of the functions.
  const std::string& head() const { return head_; }
  // A block that computes the function of `operands`, registers or numbers, into the register `result`.
  std::string call(const std::string& name, const std::vector<std::string>& operands, const std::string& result) const;

 private:
  const std::vector<std::string>& body(const std::string& name) const;

  std::string head_;
  std::map<std::string, std::vector<std::string>, std::less<>> bodies_;  // lines, from { to }
};

}  // namespace anabranch::cuda
