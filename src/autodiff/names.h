// Names of gradients inside autodiff: they carry a mark at the end (opdef/grad_context.h) until they enter the program.
#pragma once
#include <string>

#include "opdef/grad_context.h"

namespace anabranch {

inline bool is_gradient(const std::string& name) { return name.ends_with(kGradientMark); }
inline std::string gradient_name(const std::string& var) { return ir::grad_name(var) + kGradientMark; }
inline std::string plain(std::string name) {
  if (is_gradient(name)) name.pop_back();
  return name;
}

}  // namespace anabranch
