#include "opdef/grad_context.h"

#include <algorithm>

namespace anabranch {

GradOp& GradOp::in(const std::string& slot, std::vector<std::string> args) {
  op_->set_input(slot, std::move(args));
  return *this;
}

GradOp& GradOp::out(const std::string& slot, std::vector<std::string> args) {
  op_->set_output(slot, std::move(args));
  return *this;
}

GradOp& GradOp::attr(const std::string& name, Attr value) {
  op_->attrs[name] = std::move(value);
  return *this;
}

GradOp& GradOp::bare() {
  op_->attrs.clear();
  return *this;
}

GradContext::GradContext(const ir::Op& forward, const ir::Block& block, NeedsGrad needs)
    : forward_(forward), block_(block), needs_(std::move(needs)) {}

std::vector<std::string> GradContext::out(const std::string& slot) const {
  const auto ins = forward_.input_args();
  std::vector<std::string> names;
  for (const auto& n : forward_.output(slot)) {
    names.push_back(std::find(ins.begin(), ins.end(), n) == ins.end() ? n : n + kWrittenMark);
  }
  return names;
}

std::vector<std::string> GradContext::dout(const std::string& slot) const {
  std::vector<std::string> names;
  for (const auto& n : forward_.output(slot))
    names.push_back(n == ir::kEmptyVar ? n : ir::grad_name(n) + kGradientMark);
  return names;
}

std::vector<std::string> GradContext::din(const std::string& slot) const {
  std::vector<std::string> names;
  for (const auto& n : forward_.input(slot)) {
    names.push_back(n != ir::kEmptyVar && needs_(n) ? ir::grad_name(n) + kGradientMark : ir::kEmptyVar);
  }
  return names;
}

std::vector<std::string> GradContext::dbefore(const std::string& slot) const {
  const auto ins = forward_.input_args();
  std::vector<std::string> names;
  for (const auto& n : forward_.output(slot)) {
    const bool needed = n != ir::kEmptyVar && needs_(n) && std::find(ins.begin(), ins.end(), n) == ins.end();
    names.push_back(needed ? ir::grad_name(n) + kGradientMark : ir::kEmptyVar);
  }
  return names;
}

bool GradContext::needs_din(const std::string& slot, size_t i) const {
  const auto& args = forward_.input(slot);
  return i < args.size() && args[i] != ir::kEmptyVar && needs_(args[i]);
}

GradOp GradContext::op(const std::string& type) {
  auto made = std::make_shared<ir::Op>();
  made->type = type;
  made->attrs = forward_.attrs;
  made->made_at = forward_.made_at;  // an error in a gradient op points at the line that made the forward op
  ops.push_back(made);
  return GradOp(made);
}

}  // namespace anabranch
