// Shapes and index lists that an op accepts as an attribute, as one integer tensor, or as a list of one-element
// tensors. Values of tensors are known only at run time: while a program is built such extents are unknown.
#pragma once
#include <string_view>
#include <vector>

#include "opdef/infer_context.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// All elements of an int32 or int64 tensor.
std::vector<int64_t> integers_of(const Tensor& tensor, const char* what);

// The number in a [1] tensor input; null while a program is built.
const Tensor* scalar_in(const InferContext& c, const char* slot);
// The same for an integer that replaces an attribute; kUnknown while a program is built.
int64_t scalar_or(const InferContext& c, const char* slot, int64_t attr);

struct IntArg {
  std::vector<int64_t> values;
  bool known = true;  // false: tensors hold the values and the program is being built; see int_arg
};

// The tensor slot precedes the list slot, which precedes the attribute; slots that the op does not declare are "".
// While a program is built, values of tensors are `unknown`; for a list, the attribute has those that the program
// knows. A tensor of unknown length has `count` values, or as many as the attribute if that is 0.
IntArg int_arg(const InferContext& c, std::string_view tensor_slot, std::string_view list_slot,
               const std::vector<int64_t>& attr, int64_t unknown, size_t count = 0);

// The values of an INTS or LONGS attribute.
std::vector<int64_t> int_attr(const ir::Op& op, const std::string& name);

}  // namespace anabranch
