#include "graph/trainers.h"

#include "opdef/op_def.h"

namespace anabranch {

std::optional<TrainerOf> trainer_of(const ir::Program& program) {
  std::optional<TrainerOf> out;
  for (const auto& op : program.global_block().ops()) {
    const OpDef* def = find_op_or_null(op->type);
    if (!def || !(def->is(kReceives) || def->is(kEndsStep))) continue;
    if (!out) out.emplace();
    out->number = op->attr<int32_t>("trainer_id");
    if (!def->is(kEndsStep) || op->attr<bool>("half_async")) continue;
    const auto& servers = op->attr<std::vector<std::string>>("endpoints");
    out->in_step = !servers.empty();
    if (out->in_step) out->endpoint = servers[0];
  }
  return out;
}

}  // namespace anabranch
