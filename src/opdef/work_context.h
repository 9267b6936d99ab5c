// The interface of functions for an op's arithmetic: the tensors of its arguments. A gradient op uses the function of
// its forward op: there out(slot) is the gradient of that output, which has its shape.
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
  // null: absent, or not a tensor
  const Tensor* in(std::string_view slot) const { return find(op_.inputs, ins_, slot); }
  const Tensor* out(std::string_view slot) const;
  double elems_in(std::string_view slot) const;  // of all arguments of the slot
  // How many times the forward op's arithmetic is done: once, and in the gradient op once for each needed gradient of
  // these inputs.
  int times(std::initializer_list<std::string_view> inputs) const;

 private:
  static const Tensor* find(const std::vector<ir::Slot>& slots, std::span<Value* const> values, std::string_view slot);

  const OpDef& def_;
  const ir::Op& op_;
  std::span<Value*const> ins_, outs_;
};

// The tensor of a value, or the rows of a sparse one; null for other kinds.
const Tensor* tensor_in(const Value* v);
double elems_of(const Tensor* t);  // 0 for null

}  // namespace anabranch
