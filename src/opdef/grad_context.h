// The interface of gradient functions: the forward op, the names of the gradients of its outputs (given) and of its
// inputs (needed). A function returns gradient ops as data; append_backward puts them into the program.
//
//   .grad([](GradContext& g) {
//     g.op("relu_grad").in("Out", g.out("Out")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
//   })
//
// Inside autodiff/ the names of gradients end with kGradientMark, so that they differ from all forward variables, and
// an output that the op also reads ends with kWrittenMark where the gradient op reads the written value.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

// Of an op with a gradient block: variables that the forward block overwrites in any case, so that the gradient of
// their earlier values is zero. Its block computes no x@GRAD of them.
inline constexpr const char* kEndingGradients = "op_ending_gradients";  // STRINGS

inline constexpr char kGradientMark = '\1', kWrittenMark = '\2';

class GradOp {  // builder of one gradient op; attributes of the forward op are copied unless bare() is called
 public:
  explicit GradOp(ir::OpRef op) : op_(std::move(op)) {}
  GradOp& in(const std::string& slot, std::vector<std::string> args);
  GradOp& out(const std::string& slot, std::vector<std::string> args);
  GradOp& attr(const std::string& name, Attr value);
  GradOp& bare();  // drops the copied attributes
 private:
  ir::OpRef op_;
};

class GradContext {
 public:
  using NeedsGrad = std::function<bool(const std::string& var)>;
  GradContext(const ir::Op& forward, const ir::Block& block, NeedsGrad needs);

  std::vector<std::string> in(const std::string& slot) const { return forward_.input(slot); }
  std::vector<std::string> out(const std::string& slot) const;
  std::vector<std::string> dout(const std::string& slot) const;  // x -> x@GRAD
  std::vector<std::string> din(const std::string& slot) const;   // x -> x@GRAD, or kEmptyVar if it is not needed
  // x -> x@GRAD of an output's value before the op, if it may have had one and no input is given; otherwise kEmptyVar.
  std::vector<std::string> dbefore(const std::string& slot) const;
  bool needs_din(const std::string& slot, size_t i = 0) const;
  const ir::Op& forward() const { return forward_; }
  const ir::Block& block() const { return block_; }
  template <class T> const T& attr(std::string_view name) const { return forward_.attr<T>(name); }

  GradOp op(const std::string& type);
  std::vector<ir::OpRef> ops;  // the ops created so far

 private:
  const ir::Op& forward_;
  const ir::Block& block_;
  NeedsGrad needs_;
};

}  // namespace anabranch
