// Optional operands of library calls.
#pragma once
#include "opdef/library_call.h"

namespace anabranch::device {

inline ab_operand given_to(const KernelContext& c, In in) {
  return in ? read_by(c[in]) : ab_operand{nullptr, 0, AB_READ, 0};
}
inline ab_operand needed_by(const KernelContext& c, Out out) {
  return c.needs(out) ? written_by(c[out]) : ab_operand{nullptr, 0, AB_WRITE, 0};
}

}  // namespace anabranch::device
