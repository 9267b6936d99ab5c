#include "opdef/kernel_context.h"

#include "opdef/op_def.h"

namespace anabranch {
namespace {
// The offset and number of a slot's arguments. After the last argument of an op comes Value::nothing(), the target of
// handles of slots without arguments.
std::pair<int, int> locate(const std::vector<ir::Slot>& slots, std::string_view name) {
  int at = 0;
  std::pair<int, int> found{-1, 0};
  for (const auto& s : slots) {
    const int n = static_cast<int>(s.args.size());
    if (s.name == name && n > 0 && !(n == 1 && s.args[0] == ir::kEmptyVar)) found = {at, n};
    at += n;
  }
  return found.second > 0 ? found : std::pair<int, int>{at, 0};
}
}  // namespace

In KernelArgs::in(std::string_view slot) const {
  AB_CHECK(def_.find_input(slot) != nullptr, Internal, "op {} declares no input {}", def_.type(), slot);
  const auto [first, count] = locate(op_.inputs, slot);
  return {first, count};
}

bool KernelArgs::has_in(std::string_view slot) const { return def_.find_input(slot) != nullptr; }

Out KernelArgs::out(std::string_view slot) const {
  AB_CHECK(def_.find_output(slot) != nullptr, Internal, "op {} declares no output {}", def_.type(), slot);
  const auto [first, count] = locate(op_.outputs, slot);
  return {first, count};
}

std::shared_ptr<BlockRunner> KernelArgs::block(const std::string& attr) const {
  AB_CHECK(blocks_ != nullptr, Unsupported, "op {} runs a sub-block, which needs a program around it", def_.type());
  return (*blocks_)(op_.attr<BlockRef>(attr).idx);
}

}  // namespace anabranch
