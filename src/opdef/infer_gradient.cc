// The shape function of gradient ops that declare none.
#include <algorithm>
#include <memory>
#include <utility>

#include "opdef/op_def.h"

namespace anabranch {

// Sources of a gradient op's shapes, as positions in its flattened arguments: determined once, used at every layout.
struct GradientShapes {
  struct Copy {
    size_t from, to;
  };
  struct Result : Copy {
    int lod = -1;  // the input whose sequences it has
  };
  struct Check {
    std::string slot;
    size_t have, expected;
  };
  ir::Op op;                              // the forward op, with the arguments that the gradient op has
  std::unique_ptr<InferContext> forward;  // null: the gradient op does not read all of its inputs
  std::vector<Copy> args;                 // from the gradient op's inputs to the forward op's
  std::vector<Check> by_forward;          // inputs that have the shape of an output of the forward op
  std::vector<Check> by_each_other;       // inputs that have the shape of another input
  std::vector<Result> results;            // from inputs to outputs
};

namespace {

size_t place_of(const std::vector<ir::Slot>& slots, const std::string& name) {
  size_t at = 0;
  for (const ir::Slot& s : slots) {
    if (s.name == name) break;
    at += s.args.size();
  }
  return at;
}

bool contains(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

bool given(const std::vector<std::string>& args) { return !args.empty() && args[0] != ir::kEmptyVar; }

class Finder {
 public:
  using Lods = std::vector<std::pair<std::string, std::string>>;
  Finder(const OpDef& forward, const Lods& lods, const ir::Op& grad)
      : forward_(forward), reads_(forward.grad_reads()), lods_(lods), grad_(grad) {}

  std::shared_ptr<GradientShapes> find(bool runtime) {
    made_ = std::make_shared<GradientShapes>();
    const bool all = std::all_of(forward_.inputs().begin(), forward_.inputs().end(),
                                 [&](const SlotDef& slot) { return contains(reads_.ins, slot.name); });
    if (all) {
      see_forward(runtime);
    } else {
      compare_inputs();
    }
    for (const auto& slot : reads_.to) find_result(slot);
    return made_;
  }

 private:
  void see_forward(bool runtime) {
    ir::Op& op = made_->op;
    op.type = grad_.type;
    op.attrs = grad_.attrs;
    size_t at = 0;
    for (const SlotDef& slot : forward_.inputs()) {
      op.inputs.push_back({slot.name, grad_.input(slot.name)});
      const size_t from = place_of(grad_.inputs, slot.name);
      for (size_t i = 0; i < op.inputs.back().args.size(); ++i) made_->args.push_back({from + i, at++});
    }
    at = 0;
    for (const SlotDef& slot : forward_.outputs()) {
      const std::string gradient = ir::grad_name(slot.name);
      const auto& args = given(grad_.input(slot.name)) ? grad_.input(slot.name) : grad_.input(gradient);
      op.outputs.push_back({slot.name, args});
      for (const auto& name : {slot.name, gradient}) {
        const size_t n = std::min(grad_.input(name).size(), args.size()), from = place_of(grad_.inputs, name);
        for (size_t i = 0; i < n; ++i) {
          if (grad_.input(name)[i] != ir::kEmptyVar) made_->by_forward.push_back({name, from + i, at + i});
        }
      }
      at += args.size();
    }
    made_->forward = std::make_unique<InferContext>(forward_, op, runtime);
  }

  // An output and its gradient have equal shapes; in an elementwise op, so have all outputs.
  void compare_inputs() {
    int expected = -1;
    for (const SlotDef& slot : forward_.outputs()) {
      if (!forward_.is(kElementwise)) expected = -1;
      for (const auto& name : {slot.name, ir::grad_name(slot.name)}) {
        if (slot.list || !given(grad_.input(name))) continue;
        const size_t have = place_of(grad_.inputs, name);
        if (expected >= 0) made_->by_each_other.push_back({name, have, static_cast<size_t>(expected)});
        if (expected < 0) expected = static_cast<int>(have);
      }
    }
    like_ = expected;
  }

  void find_result(const std::string& slot) {
    const std::string gradient = ir::grad_name(slot);
    const auto &outs = grad_.output(gradient), &ins = grad_.input(slot);
    if (!given(outs) && outs.size() < 2) return;
    const size_t to = place_of(grad_.outputs, gradient);
    if (!contains(reads_.ins, slot)) {
      AB_CHECK(like_ >= 0, InvalidArgument, "the gradient of an output must be given");
      made_->results.push_back({{static_cast<size_t>(like_), to}, lod_of(gradient)});
      return;
    }
    AB_CHECK(outs.size() == ins.size(), InvalidArgument, "{} must name as many variables as {} ({}), got {}", gradient,
             slot, ins.size(), outs.size());
    const size_t from = place_of(grad_.inputs, slot);
    for (size_t i = 0; i < outs.size(); ++i) {
      if (outs[i] == ir::kEmptyVar) continue;
      AB_CHECK(ins[i] != ir::kEmptyVar, InvalidArgument, "{} must be given, because {} is requested", slot, gradient);
      made_->results.push_back({{from + i, to + i}, lod_of(gradient, i)});
    }
  }

  // In lists, each gradient has the sequences of its input.
  int lod_of(const std::string& gradient, size_t i = 0) const {
    for (const auto& [slot, from] : lods_) {
      const auto& args = grad_.input(from);
      if (slot == gradient && given(args))
        return static_cast<int>(place_of(grad_.inputs, from) + (i < args.size() ? i : 0));
    }
    return -1;
  }

  const OpDef& forward_;
  const GradReads& reads_;
  const Lods& lods_;
  const ir::Op& grad_;
  std::shared_ptr<GradientShapes> made_;
  int like_ = -1;  // an input of the shape of all results
};

void check_alike(const std::string& slot, const Meta& have, const Meta& expected) {
  AB_CHECK(compatible(have.shape, expected.shape), ShapeMismatch, "{} must be {}, as in the forward op, got {}", slot,
           expected.shape.str(), have.shape.str());
  AB_CHECK(have.dtype == expected.dtype, InvalidArgument, "{} must hold {}, as in the forward op, got {}", slot,
           dtype_name(expected.dtype), dtype_name(have.dtype));
}

// The meta of `from`, with the sequences of `carried` if they end at the last row.
void set_result(const Meta& from, const Meta* carried, Meta* to) {
  to->kind = from.kind;
  to->shape = from.shape;
  to->dtype = from.dtype;
  to->lod_level = 0;
  to->lod = nullptr;
  if (!carried) return;
  const LoDRef& lod = carried->lod;
  const bool fits = !lod || lod->empty() || (to->shape.rank() > 0 && lod->back().back() == to->shape[0]);
  if (!fits) return;
  to->lod_level = carried->lod_level;
  to->lod = lod;
}

}  // namespace

void infer_gradient(InferContext& c) {
  const OpDef& forward = *c.def_.forward();
  if (!c.gradient_shapes_) c.gradient_shapes_ = Finder(forward, c.def_.grad_lods_, c.op()).find(c.runtime());
  const GradientShapes& g = *c.gradient_shapes_;
  if (g.forward) {
    InferContext& f = *g.forward;
    for (const auto& copy : g.args) f.ins[copy.to] = c.ins[copy.from];
    for (Meta& m : f.outs) m = Meta{};
    forward.infer_(f);
    for (const auto& check : g.by_forward) {
      const Meta& expected = f.outs[check.expected];
      if (expected.shape.rank() > 0) check_alike(check.slot, c.ins[check.have], expected);
    }
  }
  for (const auto& check : g.by_each_other) check_alike(check.slot, c.ins[check.have], c.ins[check.expected]);
  for (const auto& result : g.results) {
    const Meta* carried = result.lod < 0 ? nullptr : &c.ins[static_cast<size_t>(result.lod)];
    set_result(c.ins[result.from], carried, &c.outs[result.to]);
  }
}

}  // namespace anabranch
