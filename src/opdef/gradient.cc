// Properties that a gradient op inherits from its forward op: slots, attributes, and the shape function
// (infer_gradient.cc).
#include <algorithm>
#include <utility>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool contains(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

// Declared slots replace inherited ones; others are appended.
void put_before(std::vector<SlotDef> follow, std::vector<SlotDef>* declared) {
  for (SlotDef& slot : follow) {
    const auto own =
        std::find_if(declared->begin(), declared->end(), [&](const auto& s) { return s.name == slot.name; });
    if (own == declared->end()) continue;
    slot = std::move(*own);
    declared->erase(own);
  }
  declared->insert(declared->begin(), follow.begin(), follow.end());
}

}  // namespace

OpDef& OpDef::grad_reads(SlotNames ins, SlotNames outs) {
  reads_.ins = ins.to_vector();
  reads_.outs = outs.to_vector();
  has_reads_ = true;
  return grad([this](GradContext& g) {
    GradOp op = g.op(type_ + "_grad");
    for (const auto& slot : reads_.ins) op.in(slot, g.in(slot));
    for (const auto& slot : reads_.outs) op.in(slot, g.out(slot));
    for (const auto& slot : reads_.from) op.in(ir::grad_name(slot), g.dout(slot));
    for (const auto& slot : reads_.to) op.out(ir::grad_name(slot), g.din(slot));
  });
}

OpDef& OpDef::grad_from(SlotNames outs) {
  reads_.from = outs.to_vector();
  return *this;
}

OpDef& OpDef::grad_lod(std::string_view gradient, std::string_view from) {
  grad_lods_.emplace_back(gradient, from);
  return *this;
}

OpDef& OpDef::grad_to(SlotNames ins) {
  reads_.to = ins.to_vector();
  return *this;
}

bool OpDef::is_activation() const {
  return tile_.unary && has_reads_ && reads_.ins.empty() && reads_.outs == std::vector<std::string>{"Out"};
}

void OpDef::finish_reads() {
  if (!has_reads_) return;
  if (reads_.from.empty()) {
    for (const SlotDef& slot : outputs_) {
      if (!slot.intermediate && !slot.named_only) reads_.from.push_back(slot.name);
    }
  }
  if (reads_.to.empty()) {
    for (const SlotDef& slot : inputs_) reads_.to.push_back(slot.name);
  }
  for (const auto* names : {&reads_.ins, &reads_.to}) {
    for (const auto& name : *names) {
      AB_CHECK(find_input(name), Internal, "op {} has no input {}, which its gradient names", type_, name);
    }
  }
  for (const auto* names : {&reads_.outs, &reads_.from}) {
    for (const auto& name : *names) {
      AB_CHECK(find_output(name), Internal, "op {} has no output {}, which its gradient names", type_, name);
    }
  }
}

void OpDef::follow_slots(const OpDef& forward) {
  const GradReads& reads = forward.reads_;
  const auto of = [&](const std::string& name) { return name + " of " + forward.type_; };
  std::vector<SlotDef> ins, outs;
  for (const auto& name : reads.ins) {
    const SlotDef& slot = *forward.find_input(name);
    ins.push_back({.name = name, .doc = of(name), .list = slot.list, .optional = slot.optional});
  }
  for (const auto& name : reads.outs) {
    const SlotDef& slot = *forward.find_output(name);
    ins.push_back({.name = name, .doc = of(name), .list = slot.list, .optional = slot.optional});
  }
  for (const auto& name : reads.from) {
    const SlotDef& slot = *forward.find_output(name);
    ins.push_back(
        {.name = ir::grad_name(name), .doc = "gradient of " + of(name), .list = slot.list, .optional = slot.optional});
  }
  for (const auto& name : reads.to) {
    const bool list = forward.find_input(name)->list;
    outs.push_back({.name = ir::grad_name(name),
                    .doc = "like " + of(name),
                    .list = list,
                    .optional = reads.to.size() > 1});  // a gradient op without needed outputs is not created
  }
  put_before(std::move(ins), &inputs_);
  put_before(std::move(outs), &outputs_);
  for (const auto& [slot, what] : std::exchange(takes_, {})) {
    AB_CHECK(find_input(slot), Internal, "op {} has no input {} that could take something", type_, slot);
    takes(slot, what);
  }
}

void OpDef::follow(const OpDef& forward) {
  forward_ = &forward;
  if (!flops_) flops_ = forward.flops_;
  if (follows_) {
    if (forward.has_reads_) follow_slots(forward);
    for (const AttrDef& attr : forward.attrs_) {
      if (!find_attr(attr.name)) attrs_.push_back(attr);
    }
    if (doc_.empty()) doc_ = "Gradient of " + forward.type_ + ".";
    if (no_grad_.empty() && !grad_) no_grad_ = kNoSecondOrder;
    if (!infer_ && forward.has_reads_) {
      const bool shaped = std::all_of(forward.reads_.to.begin(), forward.reads_.to.end(), [&](const auto& slot) {
        return contains(forward.reads_.ins, slot) || forward.is(kElementwise);
      });
      AB_CHECK(shaped, Internal, "op {} needs a shape function: it does not read all inputs whose gradients it makes",
               type_);
      infer_ = infer_gradient;
    }
  }
  if (!images_.empty()) return;
  for (const ImageGroup& group : forward.images_) {
    ImageGroup own{{}, group.attr};
    for (const auto& slot : group.slots) {
      for (const auto& name : {slot, ir::grad_name(slot)}) {
        if (find_input(name) || find_output(name)) own.slots.push_back(name);
      }
    }
    if (!own.slots.empty()) images_.push_back(std::move(own));
  }
}

}  // namespace anabranch
