#include "opdef/infer_context.h"

#include "opdef/op_def.h"

namespace anabranch {
namespace {
size_t count_args(const std::vector<ir::Slot>& slots) {
  size_t n = 0;
  for (const auto& s : slots) n += s.args.size();
  return n;
}
}  // namespace

InferContext::InferContext(const OpDef& def, const ir::Op& op, bool runtime)
    : ins(count_args(op.inputs)), outs(count_args(op.outputs)), def_(def), op_(op), runtime_(runtime) {}

std::pair<int, int> InferContext::locate(const std::vector<ir::Slot>& slots, std::string_view name) {
  int at = 0;
  for (const auto& s : slots) {
    const int n = static_cast<int>(s.args.size());
    // A single kEmptyVar stands for "not given".
    if (s.name == name) return {at, n == 1 && s.args[0] == ir::kEmptyVar ? 0 : n};
    at += n;
  }
  return {at, 0};
}

int InferContext::n_in(std::string_view slot) const { return locate(op_.inputs, slot).second; }
int InferContext::n_out(std::string_view slot) const { return locate(op_.outputs, slot).second; }

const Meta& InferContext::in(std::string_view slot, int i) const {
  const auto [first, count] = locate(op_.inputs, slot);
  AB_CHECK(i < count, NotFound, "{}: input {} is not given", def_.type(), slot);
  return ins[first + i];
}

Meta& InferContext::out(std::string_view slot, int i) {
  const auto [first, count] = locate(op_.outputs, slot);
  if (i >= count) return scratch_ = Meta{};
  return outs[first + i];
}

void InferContext::copy(std::string_view to, std::string_view from, bool with_lod) {
  const Meta& source = in(from);
  Meta& target = out(to);
  target.kind = source.kind;
  target.shape = source.shape;
  target.dtype = source.dtype;
  target.lod_level = with_lod ? source.lod_level : 0;
  target.lod = with_lod ? source.lod : nullptr;
}

void InferContext::set_out(std::string_view slot, const Shape& shape, DType dtype, int i) {
  Meta& target = out(slot, i);
  target.kind = VarKind::kLoDTensor;
  target.shape = shape;
  target.dtype = dtype;
  target.lod_level = 0;
  target.lod = nullptr;
}

void InferContext::share_lod(std::string_view to, std::string_view from, int i) {
  const Meta& source = in(from);
  Meta& target = out(to, i);
  target.lod_level = source.lod_level;
  target.lod = source.lod;
}

}  // namespace anabranch
