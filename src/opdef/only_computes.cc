#include "opdef/only_computes.h"

#include <algorithm>
#include <string_view>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr std::string_view kFamilies[] = {"detection", "loss",   "math",     "metric", "nn",     "optim",
                                          "quantize",  "reduce", "sequence", "sparse", "tensor", "vision"};

}  // namespace

std::string_view op_family(const std::string& type) {
  const char* file = op_file(type);
  const std::string_view path = file ? file : "";
  const size_t end = path.rfind('/');
  if (end == std::string_view::npos) return {};
  const std::string_view folder = path.substr(0, end);
  const size_t begin = folder.rfind('/');
  const bool in_ops = begin != std::string_view::npos && folder.substr(0, begin).ends_with("ops");
  return in_ops ? folder.substr(begin + 1) : std::string_view();
}

bool only_computes(const std::string& type) {
  const OpDef* def = find_op_or_null(type);
  if (!def) return false;
  if (def->is(kOnlyComputes)) return true;
  const std::string_view family = op_family(type);
  return !def->has(kOrdered) && std::find(std::begin(kFamilies), std::end(kFamilies), family) != std::end(kFamilies);
}

}  // namespace anabranch
