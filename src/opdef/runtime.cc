#include "opdef/runtime.h"

#include <algorithm>

#include "opdef/append_op.h"

namespace anabranch {
namespace {

void read_meta(const Value& value, Meta* m) {
  m->value = nullptr;
  m->lod = nullptr;
  m->lod_level = 0;
  if (const auto* t = value.get<Tensor>()) {
    m->kind = VarKind::kLoDTensor;
    m->shape = t->shape();
    m->dtype = t->dtype();
    m->lod = t->lod_ref();
    m->lod_level = static_cast<int>(t->lod().size());
    m->value = t->place().on_host() ? t : nullptr;  // shape functions do not read devices
  } else if (const auto* r = value.get<SelectedRows>()) {
    check_rows(*r);
    m->kind = VarKind::kSelectedRows;
    m->shape = r->value.shape();
    if (m->shape.rank()) m->shape.set(0, r->height);
    m->dtype = r->value.dtype();
  } else if (value.get<TensorArray>()) {
    m->kind = VarKind::kLoDTensorArray;
  } else {
    m->kind = VarKind::kRaw;
  }
}

// Unchanged tensors are not written: another program of the scope may be reading a parameter.
void give_meta(const Meta& m, Place place, Value* value) {
  // Rank 0 does not occur: the shape function left this output to the kernel.
  if (m.kind == VarKind::kLoDTensor && m.shape.rank() > 0) {
    Tensor& t = value->as<Tensor>();
    const bool stays = place.kind == PlaceKind::kCpu && t.place().on_host();  // also in pinned memory
    t.resize(m.shape, {m.dtype, stays ? t.place() : place});
    if (t.lod_ref() != m.lod) t.set_lod(m.lod);
  } else if (m.kind == VarKind::kSelectedRows) {
    auto& rows = value->as<SelectedRows>();
    const int64_t height = m.shape.rank() ? m.shape[0] : 0;
    if (rows.height != height) rows.height = height;
    if (!rows.value.initialized() && m.shape.rank()) {  // no rows yet, but a width and a dtype that readers can use
      Shape none = m.shape;
      none.set(0, 0);
      rows.value.resize(none, {m.dtype, place});
    }
  } else if (m.kind == VarKind::kLoDTensorArray) {
    value->as<TensorArray>();
  }
}

// Tables on servers have a shape here and no memory: enough for ops that request rows, and for gradients.
bool reads_shapes_of_tables(const OpDef& def) {
  return def.is(kReceives) || def.is(kReadsTableShape) || (def.forward() && def.forward()->is(kLooksUp));
}

struct Arg {
  const std::string &slot, &name;
};
Arg arg_of(const std::vector<ir::Slot>& slots, size_t flat) {
  for (const auto& s : slots) {
    if (flat < s.args.size()) return {s.name, s.args[flat]};
    flat -= s.args.size();
  }
  AB_THROW(Internal, "argument {} is beyond the slots", flat);
}

// Inputs without a value get the dtype of the others, by which a kernel is chosen.
void give_dtypes(std::vector<Meta>& ins) {
  const auto set = std::find_if(ins.begin(), ins.end(), [](const Meta& m) { return !m.unset; });
  if (set == ins.end()) return;
  for (Meta& m : ins) m.dtype = m.unset ? set->dtype : m.dtype;
}

bool is_written(const ir::Op& op, const std::string& name) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const ir::Slot& slot) {
    return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
  });
}

}  // namespace

RuntimeShapes::RuntimeShapes(const OpDef& def, ir::OpRef op, Places places)
    : def_(def), op_(std::move(op)), places_(std::move(places)), context_(def, *op_, /*runtime=*/true) {}

void RuntimeShapes::check_place(const Tensor& tensor, size_t in) const {
  const Place lies = tensor.place(), from = places_.each_from.empty() ? places_.from : places_.each_from[in];
  // A fed tensor may already be at its destination.
  const bool fits = from.on_host() ? lies.on_host() || lies == places_.to : lies == from;
  AB_CHECK(fits, Internal, "{}: variable {} must lie at {}, got {}", op_->type, arg_of(op_->inputs, in).name,
           from.str(), lies.str());
}

void RuntimeShapes::refresh(Value* const* ins, Value* const* outs) {
  for (size_t i = 0; i < context_.ins.size(); ++i) {
    if (!ins[i]) continue;
    if (!ins[i]->initialized()) [[unlikely]] {
      if (const Tensor* t = ins[i]->get<Tensor>(); t && t->numel() > 0 && reads_shapes_of_tables(def_)) {
        read_meta(*ins[i], &context_.ins[i]);
        context_.ins[i].value = nullptr;
        continue;
      }
      const bool starts_at_zero = def_.is(kSkipsUnset) && is_written(*op_, arg_of(op_->inputs, i).name);
      if (def_.has(kMaybeUnset) || starts_at_zero) {
        context_.ins[i] = Meta{};
        context_.ins[i].unset = starts_at_zero;
        continue;
      }
      throw Error(ErrorKind::kNotFound,
                  fmt::format("{}: variable {} holds no value", op_->type, arg_of(op_->inputs, i).name))
          .with_hint("feed it; if it is a parameter, run the startup program first");
    }
    read_meta(*ins[i], &context_.ins[i]);
    if (context_.ins[i].kind != VarKind::kLoDTensor) [[unlikely]]
      def_.check_kind(arg_of(op_->inputs, i).slot, arg_of(op_->inputs, i).name, context_.ins[i].kind);
    const Tensor* t = ins[i]->get<Tensor>();
    if (t) check_place(*t, i);
    AB_CHECK(!t || t->contiguous(), Unsupported,
             "{}: variable {} is a view with gaps between its rows, which this op does not read", op_->type,
             arg_of(op_->inputs, i).name);
  }
  if (def_.is(kSkipsUnset)) give_dtypes(context_.ins);
  for (Meta& m : context_.outs) m = Meta{};
  def_.run_infer(context_);
  check_in_place(ins, outs);
  for (size_t i = 0; i < context_.outs.size(); ++i) {
    if (!outs[i]) continue;
    const Meta& m = context_.outs[i];
    AB_CHECK(m.kind != VarKind::kLoDTensor || m.shape.known(), InvalidArgument,
             "{}: {} must have a known shape when the program runs, got {}", op_->type, arg_of(op_->outputs, i).name,
             m.shape.str());
    give_meta(m, places_.each_to.empty() ? places_.to : places_.each_to[i], outs[i]);
  }
}

// A value updated in place has one memory for input and output. It may shrink, because files of Fluid hold statistics
// with more elements than an op declares, but neither grow nor change its type.
void RuntimeShapes::check_in_place(Value* const* ins, Value* const* outs) const {
  for (size_t o = 0; o < context_.outs.size(); ++o) {
    const Meta& out = context_.outs[o];
    if (!outs[o] || out.kind != VarKind::kLoDTensor || out.shape.rank() == 0) continue;
    for (size_t i = 0; i < context_.ins.size(); ++i) {
      if (ins[i] != outs[o]) continue;
      const Meta& in = context_.ins[i];
      const bool fits = in.shape == out.shape || out.shape.numel() <= in.shape.numel();
      AB_CHECK(in.kind == out.kind && in.dtype == out.dtype && fits, ShapeMismatch,
               "variable {} is updated in place, so it must stay {} {}, got {} {}", arg_of(op_->outputs, o).name,
               dtype_name(in.dtype), in.shape.str(), dtype_name(out.dtype), out.shape.str());
    }
  }
}

void run_op(ir::Op op, const std::function<Value*(const std::string&)>& find, Parallel* parallel, uint64_t seed) {
  check_op(op);
  auto held = std::make_shared<ir::Op>(std::move(op));
  const auto collect = [&](const std::vector<ir::Slot>& slots) {
    std::vector<Value*> values;
    for (const auto& s : slots) {
      for (const auto& a : s.args) values.push_back(a == ir::kEmptyVar ? nullptr : find(a));
    }
    values.push_back(Value::nothing());  // target of handles for missing arguments
    return values;
  };
  const auto ins = collect(held->inputs), outs = collect(held->outputs);
  const OpDef& def = find_op(held->type);
  RuntimeShapes shapes(def, held);
  shapes.refresh(ins.data(), outs.data());
  const DType dtype = def.kernel_dtype(*held, shapes.context().ins);
  const Kernel kernel = def.kernel(dtype)(KernelArgs(def, *held, dtype, {seed}));
  KernelContext c;
  c.ins = ins.data();
  c.outs = outs.data();
  c.parallel = parallel;
  kernel(c);
}

}  // namespace anabranch
