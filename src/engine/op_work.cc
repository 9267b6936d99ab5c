#include "engine/op_work.h"

#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Rows of a table that an op uses: those of its sparse gradient, or those of its ids.
double rows_touched(bool looks_up, std::span<Value* const> ins, const WorkContext& c) {
  for (const Value* v : ins) {
    if (v && v->get<SelectedRows>()) return static_cast<double>(v->get<SelectedRows>()->rows.size());
  }
  return looks_up ? c.elems_in("Ids") : -1;
}

double bytes_of(bool looks_up, std::span<Value* const> ins, std::span<Value* const> outs, const WorkContext& c) {
  const double rows = rows_touched(looks_up, ins, c);
  double height = -1;
  for (const Value* v : ins) {
    if (v && v->get<SelectedRows>()) height = static_cast<double>(v->get<SelectedRows>()->height);
  }
  double bytes = 0;
  const auto add = [&](std::span<Value* const> values) {
    for (const Value* v : values) {
      const Tensor* t = tensor_in(v);
      if (!t) continue;
      const auto all = static_cast<double>(t->bytes());
      const auto own = static_cast<double>(t->shape().rank() ? t->rows() : 1);
      const bool table = rows >= 0 && !v->get<SelectedRows>() && own > 0 && (own == height || looks_up);
      bytes += table ? all * std::min(1.0, rows / own) : all;
    }
  };
  add(ins);
  add(outs);
  return bytes;
}

}  // namespace

OpWork work_of(const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs) {
  const OpDef& def = find_op(op.type);
  const bool looks_up = def.is(kLooksUp) || (def.forward() && def.forward()->is(kLooksUp));
  const WorkContext c(def, op, ins, outs);
  return {def.flops(c), bytes_of(looks_up, ins, outs, c)};
}

}  // namespace anabranch
