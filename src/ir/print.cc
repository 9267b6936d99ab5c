#include "ir/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace anabranch::ir {
namespace {

bool is_detail(const std::string& attr) {
  return attr == "op_role" || attr == "op_role_var" || attr == "op_namescope" || attr == "op_device";
}

std::string slots_str(const std::vector<Slot>& slots) {
  std::string text;
  for (const auto& slot : slots) {
    if (slot.args.empty()) continue;
    if (!text.empty()) text += ", ";
    const bool one = slot.args.size() == 1;
    text += one ? fmt::format("{}={}", slot.name, slot.args[0])
                : fmt::format("{}=[{}]", slot.name, fmt::join(slot.args, ", "));
  }
  return text;
}

class Printer {
 public:
  Printer(const Program& program, bool with_details) : program_(program), with_details_(with_details) {}

  std::string run() {
    // Blocks that no op refers to follow at the end; each block is printed once.
    for (int i = 0; i < program_.num_blocks(); ++i) print(program_.block(i), 0);
    return std::move(text_);
  }

 private:
  void print(const Block& block, int depth) {
    if (!printed_.insert(block.idx()).second) return;
    const std::string indent(static_cast<size_t>(std::min(depth, 32)) * 4, ' ');
    text_ += fmt::format("{}block {}", indent, block.idx());
    if (block.parent() >= 0) text_ += fmt::format(" in block {}", block.parent());
    if (block.forward_block >= 0) text_ += fmt::format(", gradient of block {}", block.forward_block);
    text_ += '\n';
    for (const auto& var : block.vars()) text_ += fmt::format("{}  {}\n", indent, to_text(*var));
    for (size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i];
      text_ += fmt::format("{}  #{} {}\n", indent, i, to_text(op, with_details_));
      if (depth >= kMaxDepth) continue;
      for (const int sub : op.sub_blocks()) {
        if (sub >= 0 && sub < program_.num_blocks()) print(program_.block(sub), depth + 1);
      }
    }
  }

  static constexpr int kMaxDepth = 100;  // deeper blocks are printed at the end, not inside

  const Program& program_;
  const bool with_details_;
  std::set<int> printed_;
  std::string text_;
};

}  // namespace

std::string to_text(const Var& var) {
  std::string text = fmt::format("{} {}", var.is_parameter ? "param" : "var", var.name);
  if (var.kind == VarKind::kLoDTensor || var.kind == VarKind::kSelectedRows || var.kind == VarKind::kLoDTensorArray) {
    text += fmt::format(" : {} {}", dtype_name(var.dtype), var.shape.str());
  }
  if (var.kind != VarKind::kLoDTensor) text += fmt::format(" {}", var_kind_name(var.kind));
  if (var.lod_level) text += fmt::format(" lod_level={}", var.lod_level);
  if (var.persistable) text += " persistable";
  if (var.is_data) text += " data";
  if (var.need_check_feed) text += " checked";
  if (var.stop_gradient) text += " stop_gradient";
  if (var.is_parameter && !var.trainable) text += " frozen";
  return text;
}

std::string to_text(const Op& op, bool with_details) {
  const std::string outs = slots_str(op.outputs);
  std::string text = outs.empty() ? "" : outs + " = ";
  text += fmt::format("{}({})", op.type, slots_str(op.inputs));
  std::string attrs;
  for (const auto& [name, value] : op.attrs) {
    if (is_detail(name) && !with_details) continue;
    attrs += fmt::format("{}{}={}", attrs.empty() ? "" : ", ", name, attr_str(value));
  }
  if (!attrs.empty()) text += " {" + attrs + "}";
  if (with_details && op.made_at.known()) text += "  made at " + op.made_at.str();
  return text;
}

std::string to_text(const Program& program, bool with_details) { return Printer(program, with_details).run(); }

}  // namespace anabranch::ir
