#include "opdef/kernel_context.h"

#include "opdef/op_def.h"

namespace anabranch {
namespace {
std::pair<int, int> locate(const std::vector<ir::Slot>& slots, std::string_view name) {
  int at = 0;
  for (const auto& s : slots) {
    const int n = static_cast<int>(s.args.size());
    if (s.name == name) return {at, n};
    at += n;
  }
  return {at, 0};
}
}  // namespace

In KernelArgs::in(std::string_view slot) const {
  AB_CHECK(def_.find_input(slot) != nullptr, Internal, "op {} declares no input {}", def_.type(), slot);
  const auto [first, count] = locate(op_.inputs, slot);
  const bool none = count == 1 && op_.input(slot)[0] == ir::kEmptyVar;
  return {first, none ? 0 : count};
}

Out KernelArgs::out(std::string_view slot) const {
  AB_CHECK(def_.find_output(slot) != nullptr, Internal, "op {} declares no output {}", def_.type(), slot);
  const auto [first, count] = locate(op_.outputs, slot);
  const bool none = count == 1 && op_.output(slot)[0] == ir::kEmptyVar;
  return {first, none ? 0 : count};
}

std::shared_ptr<BlockRunner> KernelArgs::block(const std::string& attr) const {
  AB_CHECK(blocks_ != nullptr, Unsupported, "op {} runs a sub-block, which needs a program around it", def_.type());
  return (*blocks_)(op_.attr<BlockRef>(attr).idx);
}

}  // namespace anabranch
