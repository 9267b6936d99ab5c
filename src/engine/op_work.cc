#include "engine/op_work.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace anabranch {
namespace {

const Tensor* tensor_in(const Value* v) {
  if (!v) return nullptr;
  if (const auto* rows = v->get<SelectedRows>()) return &rows->value;
  const Tensor* t = v->get<Tensor>();
  return t && t->initialized() ? t : nullptr;
}

// The arguments of an op by slot.
class Arguments {
 public:
  Arguments(const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs)
      : op_(op), ins_(ins), outs_(outs) {}

  const Tensor* in(std::string_view slot) const { return find(op_.inputs, ins_, slot); }
  const Tensor* out(std::string_view slot) const { return find(op_.outputs, outs_, slot); }
  double elems_in(std::string_view slot) const {  // of all arguments of the slot
    double all = 0;
    size_t at = 0;
    for (const ir::Slot& s : op_.inputs) {
      for (size_t k = 0; k < s.args.size(); ++k, ++at) {
        const Tensor* t = s.name == slot && at < ins_.size() ? tensor_in(ins_[at]) : nullptr;
        if (t) all += static_cast<double>(t->numel());
      }
    }
    return all;
  }
  int given_outputs(std::initializer_list<std::string_view> slots) const {
    return static_cast<int>(std::count_if(slots.begin(), slots.end(), [&](auto slot) { return out(slot) != nullptr; }));
  }

 private:
  static const Tensor* find(const std::vector<ir::Slot>& slots, std::span<Value* const> values, std::string_view slot) {
    size_t at = 0;
    for (const ir::Slot& s : slots) {
      if (s.name == slot) return s.args.empty() || at >= values.size() ? nullptr : tensor_in(values[at]);
      at += s.args.size();
    }
    return nullptr;
  }

  const ir::Op& op_;
  std::span<Value*const> ins_, outs_;
};

double elems(const Tensor* t) { return t ? static_cast<double>(t->numel()) : 0; }

// [B, M, K] x [B, K, N] -> [B, M, N]: the product of the three sizes is (M K N)^2 B^3, or B^2 when one side has no B.
double product_flops(const Tensor* x, const Tensor* y, const Tensor* out) {
  if (!x || !y || !out) return 0;
  double batch = 1;
  if (x->shape().rank() > 2 && y->shape().rank() > 2) {
    for (int i = 0; i + 2 < std::min(x->shape().rank(), y->shape().rank()); ++i) {
      batch *= static_cast<double>(std::min(x->shape()[i], y->shape()[i]));
    }
  }
  return 2 * std::sqrt(elems(x) * elems(y) * elems(out) / std::max(batch, 1.0));
}

// A filter [out, in / groups, ...] is used once for each output position.
double convolution_flops(const Tensor* filter, const Tensor* at) {
  if (!filter || !at || filter->rows() == 0) return 0;
  return 2 * elems(at) * elems(filter) / static_cast<double>(filter->rows());
}

struct ProductSlots {
  std::string_view type, x, y, out;
};
constexpr ProductSlots kProducts[] = {{"mul", "X", "Y", "Out"},
                                      {"matmul", "X", "Y", "Out"},
                                      {"bmm", "X", "Y", "Out"},
                                      {"fc", "Input", "W", "Out"},
                                      {"fused_fc", "X", "Y", "Out"}};

struct ConvolutionSlots {
  std::string_view type, at;  // `at` has one element for each use of a filter
};
constexpr ConvolutionSlots kConvolutions[] = {{"conv2d", "Output"},          {"depthwise_conv2d", "Output"},
                                              {"conv3d", "Output"},          {"conv2d_fusion", "Output"},
                                              {"conv2d_transpose", "Input"}, {"conv3d_transpose", "Input"}};

struct RecurrentSlots {
  std::string_view type, gates, weight;  // gates: [steps, n * size]; weight: [size, n * size]
};
constexpr RecurrentSlots kRecurrent[] = {{"lstm", "Input", "Weight"}, {"gru", "Input", "Weight"}};

double flops_of(std::string_view type, const Arguments& a) {
  const bool grad = type.ends_with("_grad");
  const std::string_view base = grad ? type.substr(0, type.size() - 5) : type;
  const auto forward = [&](std::string_view slot) {  // an output of the forward op: in its gradient, of that shape
    if (!grad) return a.out(slot);
    const Tensor* t = a.in(std::string(slot) + "@GRAD");
    return t ? t : a.in(slot);
  };
  for (const ProductSlots& p : kProducts) {
    if (base != p.type) continue;
    const double once = product_flops(a.in(p.x), a.in(p.y), forward(p.out));
    return grad ? once * a.given_outputs({std::string(p.x) + "@GRAD", std::string(p.y) + "@GRAD"}) : once;
  }
  for (const ConvolutionSlots& c : kConvolutions) {
    if (base != c.type) continue;
    const double once = convolution_flops(a.in("Filter"), c.at == "Output" ? forward(c.at) : a.in(c.at));
    return grad ? once * a.given_outputs({"Input@GRAD", "Filter@GRAD"}) : once;
  }
  for (const RecurrentSlots& r : kRecurrent) {
    if (base != r.type || !a.in(r.weight)) continue;
    const double once = 2 * elems(a.in(r.gates)) * static_cast<double>(a.in(r.weight)->rows());
    return grad ? 2 * once : once;
  }
  return 0;
}

// Look-ups of many slots in one op, in tables of any heights.
bool is_fused_lookup(const ir::Op& op) { return op.type.starts_with("fused_embedding"); }

// Rows that an op touches of a table: those of its sparse gradient, or those that its ids ask for.
double rows_touched(const ir::Op& op, std::span<Value* const> ins, const Arguments& a) {
  for (const Value* v : ins) {
    if (v && v->get<SelectedRows>()) return static_cast<double>(v->get<SelectedRows>()->rows.size());
  }
  const bool looks_up = op.type.starts_with("lookup_table") || is_fused_lookup(op);
  return looks_up ? a.elems_in("Ids") : -1;
}

double bytes_of(const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs, const Arguments& a) {
  const double rows = rows_touched(op, ins, a);
  double height = -1;
  for (const Value* v : ins) {
    if (v && v->get<SelectedRows>()) height = static_cast<double>(v->get<SelectedRows>()->height);
  }
  if (height < 0 && rows >= 0 && a.in("W")) height = static_cast<double>(a.in("W")->rows());
  double bytes = 0;
  const auto add = [&](std::span<Value* const> values) {
    for (const Value* v : values) {
      const Tensor* t = tensor_in(v);
      if (!t) continue;
      const auto all = static_cast<double>(t->bytes());
      const auto own = static_cast<double>(t->shape().rank() ? t->rows() : 1);
      const bool table = rows >= 0 && !v->get<SelectedRows>() && own > 0 && (own == height || is_fused_lookup(op));
      bytes += table ? all * std::min(1.0, rows / own) : all;
    }
  };
  add(ins);
  add(outs);
  return bytes;
}

}  // namespace

OpWork work_of(const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs) {
  const Arguments a(op, ins, outs);
  return {flops_of(op.type, a), bytes_of(op, ins, outs, a)};
}

}  // namespace anabranch
