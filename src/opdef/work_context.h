// What a function of an op's arithmetic sees: the tensors of its arguments. A gradient op is asked the function of its
// forward op: there out(slot) is the gradient of that output, which has its shape.
#pragma once
#include <initializer_list>
#include <span>
#include <string_view>

#include "core/value.h"
#include "ir/op.h"

namespace anabranch {

class OpDef;

class WorkContext {
 public:
  // ins and outs: in the order of the op's arguments; null for "none".
  WorkContext(const OpDef& def, const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs)
      : def_(def), op_(op), ins_(ins), outs_(outs) {}

  bool gradient() const;
  const ir::Op& op() const { return op_; }
  const Tensor* in(std::string_view slot) const { return find(op_.inputs, ins_, slot); }  // null: not given, no tensor
  const Tensor* out(std::string_view slot) const;
  double elems_in(std::string_view slot) const;  // of all arguments of the slot
  // How often the forward op's arithmetic is done: once, and in the gradient op once for each of the gradients of these
  // inputs that is wanted.
  int times(std::initializer_list<std::string_view> inputs) const;

 private:
  static const Tensor* find(const std::vector<ir::Slot>& slots, std::span<Value* const> values, std::string_view slot);

  const OpDef& def_;
  const ir::Op& op_;
  std::span<Value*const> ins_, outs_;
};

// The tensor of a value, or the rows of a sparse one; null when it holds neither.
const Tensor* tensor_in(const Value* v);
double elems_of(const Tensor* t);  // 0 for null

}  // namespace anabranch
