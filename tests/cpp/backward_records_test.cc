// Gradient ops against those of Fluid: the recorded programs are cut back to their forward ops and differentiated
// again.
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "autodiff/backward.h"
#include "base/flags.h"
#include "ir/serialize.h"
#include "ir/well_formed.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "type: slot=args ... -> slot=args ..." with slots by name and without empty ones.
std::string signature(const ir::Op& op) {
  const auto side = [](std::vector<ir::Slot> slots) {
    std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::string text;
    for (const auto& slot : slots) {
      if (!slot.args.empty()) text += fmt::format(" {}={}", slot.name, fmt::join(slot.args, ","));
    }
    return text;
  };
  std::set<std::string> roles;
  for (const auto& [parameter, gradient] : op.role_vars()) roles.insert(parameter + ":" + gradient);
  return fmt::format("{}:{} ->{} role {} {}", op.type, side(op.inputs), side(op.outputs), op.role(),
                     fmt::join(roles, " "));
}

struct Recorded {
  ir::ProgramRef program;  // forward ops only
  std::string loss;
  std::vector<std::string> expected;  // signatures of the gradient ops
};

bool is_backward(const ir::Op& op) { return (op.role() & ir::role::kBackward) != 0; }

// Empty program when this one does not fit: two losses, sub-blocks, ops that are not registered.
Recorded cut_back(const fs::path& path) {
  Recorded r;
  const auto program = ir::parse_program(read(path));
  ir::Block& block = program->global_block();
  size_t first = block.ops().size(), last = 0;
  std::set<std::string> parameters;
  for (size_t i = 0; i < block.ops().size(); ++i) {
    const ir::Op& op = *block.ops()[i];
    if (!find_op_or_null(op.type) || !op.sub_blocks().empty()) return {};
    for (const auto& [parameter, gradient] : op.role_vars()) parameters.insert(parameter);
    if (!is_backward(op)) continue;
    first = std::min(first, i);
    last = i;
    r.expected.push_back(signature(op));
  }
  if (first >= last || r.expected.size() != last + 1 - first) return {};
  if (block.ops()[first]->role() != 257 || block.ops()[first - 1]->role() != 256) return {};
  r.loss = block.ops()[first - 1]->output_args().at(0);
  if (block.ops()[first]->output_args().at(0) != ir::grad_name(r.loss)) return {};
  // A file does not tell which variables stop gradients; that there is no gradient of a variable does.
  for (const auto& var : block.vars()) {
    var->is_parameter = parameters.count(var->name) != 0;
    var->stop_gradient = !block.find_var(ir::grad_name(var->name));
  }
  block.remove_ops(first, block.ops().size());
  std::vector<std::string> gradients;
  for (const auto& var : block.vars()) {
    if (var->name.find(ir::kGradSuffix) != std::string::npos) gradients.push_back(var->name);
  }
  for (const auto& name : gradients) block.remove_var(name);
  for (const auto& op : block.ops()) {  // shapes of intermediate outputs are our own
    check_op(*op);
    infer_op(block, *op);
  }
  r.program = program;
  return r;
}

TEST(Backward, MakesTheGradientOpsOfRecordedPrograms) {
  // The gradient through the cell of an LSTM is left out as in Fluid 1.8.5.
  set_flag("FLAGS_fluid_exact", std::string("1.8.5"));
  int compared = 0;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator("tests/golden/data")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    if (!fs::exists(path / "main.pb")) continue;
    Recorded r = cut_back(path / "main.pb");
    // A callback adds ops between the gradient ops; forward ops are computed again; the gradient of group_norm reads X
    // here, and Y there.
    const std::set<std::string> made_otherwise = {"clip_regularize.error_clip", "optimizer_wrappers.recompute",
                                                  "model_metric"};
    if (!r.program || made_otherwise.count(path.filename().string())) continue;
    ir::Block& block = r.program->global_block();
    const size_t forward = block.ops().size();
    append_backward(*r.program, r.loss, {});
    std::vector<std::string> made;
    for (size_t i = forward; i < block.ops().size(); ++i) made.push_back(signature(*block.ops()[i]));
    EXPECT_THAT(made, testing::ElementsAreArray(r.expected)) << path;
    EXPECT_NO_THROW(ir::check_well_formed(*r.program)) << path;
    ++compared;
  }
  set_flag("FLAGS_fluid_exact", std::string(""));
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace anabranch
