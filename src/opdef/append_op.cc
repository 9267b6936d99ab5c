#include "opdef/append_op.h"

#include <fmt/ranges.h>

#include "ir/versions.h"

namespace anabranch {
namespace {

Meta meta_of(const ir::Var& var) {
  Meta m;
  m.kind = var.kind;
  m.shape = var.shape;
  m.dtype = var.dtype;
  m.lod_level = var.lod_level;
  return m;
}

// The declaration of the variable at the version that the op reads.
Meta meta_of_version(const ir::Var& var, std::optional<int> version) {
  Meta m = meta_of(var);
  for (const auto& then : var.earlier) {
    if (!version || then.version < *version) continue;
    m.shape = then.shape;
    m.dtype = then.dtype;
    break;
  }
  return m;
}

void fill_metas(const ir::Block& block, const ir::Op& op, const std::vector<ir::Slot>& slots,
                const VersionOf& version_of, std::vector<Meta>* out) {
  size_t at = 0;
  for (const auto& slot : slots) {
    for (size_t i = 0; i < slot.args.size(); ++i) {
      const std::string& arg = slot.args[i];
      Meta& m = (*out)[at++];
      if (arg == ir::kEmptyVar) continue;
      const auto var = block.find_var_recursive(arg);
      AB_CHECK(var != nullptr, NotFound, "{}: variable {} of slot {} is in no block that can be seen", op.type, arg,
               slot.name);
      std::optional<int> version;
      if (&slots == &op.inputs) version = ir::version_read(op, slot.name, i);
      if (!version && version_of) version = version_of(arg);
      m = meta_of_version(*var, version);
    }
  }
}

void check_kinds(const OpDef& def, const ir::Op& op, const std::vector<Meta>& ins) {
  size_t at = 0;
  for (const auto& slot : op.inputs) {
    for (const auto& arg : slot.args) {
      const VarKind kind = ins[at++].kind;
      if (arg != ir::kEmptyVar) def.check_kind(slot.name, arg, kind);
    }
  }
}

std::vector<std::string> create_outputs(ir::Block& block, const ir::Op& op) {
  std::vector<std::string> created;
  for (const auto& name : op.output_args()) {
    if (block.find_var_recursive(name)) continue;
    ir::Var var;
    var.name = name;
    block.create_var(var);
    created.push_back(name);
  }
  return created;
}

// The current declarations of the op's outputs, before the op.
std::vector<ir::Var> outputs_of(const ir::Block& block, const ir::Op& op) {
  std::vector<ir::Var> vars;
  for (const auto& name : op.output_args()) {
    if (const auto var = block.find_var(name); var && var->shape.rank() > 0) vars.push_back(*var);
  }
  return vars;
}

// The op is last in its block: outputs that it declares differently keep their earlier declarations.
void note_earlier(const ir::Block& block, const std::vector<ir::Var>& before) {
  for (const ir::Var& old : before) {
    ir::Var& var = *block.find_var(old.name);
    if (var.shape == old.shape && var.dtype == old.dtype) continue;
    var.earlier.push_back({ir::writes_before(block, old.name, block.ops().size()), old.shape, old.dtype});
  }
}

void fill_common(ir::Op& op) {
  op.attrs.try_emplace("op_role", int32_t{ir::role::kForward});
  op.attrs.try_emplace("op_role_var", std::vector<std::string>{});
  op.attrs.try_emplace("op_namescope", std::string("/"));
  op.attrs.try_emplace("op_device", std::string());
}

// Ops with equal user seeds draw equal numbers; the others, also if a layer gave them the seed of the program, each
// have a number. A copied op keeps its number.
void number_draw(const ir::Program& program, ir::Op& op) {
  if (!find_op(op.type).has(kRandom) || op.has_attr(ir::kDrawNumber)) return;
  const int32_t seed = op.has_attr("seed") ? op.attr<int32_t>("seed") : 0;
  if (seed == 0 || seed == program.random_seed) op.attrs[ir::kDrawNumber] = int32_t{program.draws + 1};
}

// A line of an error: the variable of each input, as it is declared.
std::string inputs_of(const ir::Block& block, const ir::Op& op) {
  constexpr size_t kShown = 8;
  std::vector<std::string> all;
  for (const ir::Slot& slot : op.inputs) {
    for (const std::string& name : slot.args) {
      const auto var = block.find_var_recursive(name);
      if (!var) continue;
      all.push_back(all.size() < kShown
                        ? fmt::format("{} = {} {} {}", slot.name, name, dtype_name(var->dtype), var->shape.str())
                        : "");
    }
  }
  const size_t more = all.size() > kShown ? all.size() - kShown : 0;
  all.resize(all.size() - more);
  if (more) all.push_back(fmt::format("and {} more", more));
  return all.empty() ? "" : fmt::format("inputs {}", fmt::join(all, "; "));
}

}  // namespace

void infer_op(ir::Block& block, const ir::Op& op, const VersionOf& version_of) {
  const OpDef& def = find_op(op.type);
  InferContext c(def, op, /*runtime=*/false);
  fill_metas(block, op, op.inputs, version_of, &c.ins);
  fill_metas(block, op, op.outputs, {}, &c.outs);
  check_kinds(def, op, c.ins);
  def.run_infer(c);
  size_t at = 0;
  for (const auto& slot : op.outputs) {
    for (const auto& arg : slot.args) {
      const Meta& m = c.outs[at++];
      if (arg == ir::kEmptyVar) continue;
      ir::Var& var = *block.find_var_recursive(arg);
      var.kind = m.kind;
      var.shape = m.shape;
      var.dtype = m.dtype;
      var.lod_level = m.lod_level;
    }
  }
}

ir::OpRef append_op(ir::Block& block, OpSpec spec, std::optional<size_t> index) {
  auto op = std::make_shared<ir::Op>();
  op->type = std::move(spec.type);
  op->inputs = std::move(spec.inputs);
  op->outputs = std::move(spec.outputs);
  op->attrs = std::move(spec.attrs);
  op->made_at = current_source_loc();
  const size_t at = index.value_or(block.ops().size());
  std::vector<std::string> created;
  try {
    refuse_engine_only(*op);
    check_op(*op);
    fill_common(*op);
    created = create_outputs(block, *op);
    const auto before = at == block.ops().size() ? outputs_of(block, *op) : std::vector<ir::Var>{};
    infer_op(block, *op);
    note_earlier(block, before);
    number_draw(block.program(), *op);
  } catch (Error& e) {
    for (const auto& name : created) block.remove_var(name);
    e.with_op(op->describe(static_cast<int>(at), block.idx())).with_while("inferring shapes");
    if (const std::string inputs = inputs_of(block, *op); !inputs.empty()) e.with_note(inputs);
    throw;
  }
  return block.insert_op(at, op);
}

}  // namespace anabranch
