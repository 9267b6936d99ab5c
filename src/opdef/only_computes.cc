#include "opdef/only_computes.h"

#include <algorithm>
#include <string_view>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr std::string_view kFolders[] = {"loss",   "math",     "metric", "nn",    "optim",
                                         "reduce", "sequence", "sparse", "tensor"};

// In folders where others do more, or ordered ops: their order concerns tables and queues of this process only.
constexpr std::string_view kOps[] = {
    "conditional_block", "conditional_block_grad", "select_input", "select_output", "lookup_growable", "read",
};

template <class List> bool holds(const List& list, std::string_view wanted) {
  return std::find(std::begin(list), std::end(list), wanted) != std::end(list);
}

// "math" of ".../src/ops/math/relu.cc".
std::string_view folder_of(std::string_view file) {
  const size_t end = file.rfind('/');
  if (end == std::string_view::npos) return {};
  const std::string_view folder = file.substr(0, end);
  const size_t begin = folder.rfind('/');
  const bool in_ops = begin != std::string_view::npos && folder.substr(0, begin).ends_with("ops");
  return in_ops ? folder.substr(begin + 1) : std::string_view();
}

}  // namespace

bool only_computes(const std::string& type) {
  const OpDef* def = find_op_or_null(type);
  if (!def) return false;
  return holds(kOps, type) || (!def->has(kOrdered) && holds(kFolders, folder_of(op_file(type))));
}

}  // namespace anabranch
