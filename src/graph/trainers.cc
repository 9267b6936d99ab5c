#include "graph/trainers.h"

#include <algorithm>

#include "comm/group.h"
#include "opdef/op_def.h"

namespace anabranch {

namespace {

// In sync training each worker's gradients have distinct names at the servers: "w@GRAD.trainer_1". Counters have them
// in every mode.
bool sends_for_a_step(const ir::Op& op) {
  const auto& given = op.attr<std::vector<std::string>>("send_varnames");
  for (const auto& name : given.empty() ? op.input("X") : given) {
    if (!name.starts_with('@') && name.rfind(".trainer_") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::optional<TrainerOf> trainer_of(const ir::Program& program) {
  std::optional<TrainerOf> out;
  std::vector<std::string> servers;
  bool ends = false;
  for (const auto& op : program.global_block().ops()) {
    const OpDef* def = find_op_or_null(op->type);
    if (!def) continue;
    if (def->is(kSends) && sends_for_a_step(*op)) {
      for (const auto& server : op->attr<std::vector<std::string>>("epmap")) {
        if (std::find(servers.begin(), servers.end(), server) == servers.end()) servers.push_back(server);
      }
    }
    // Operations with the processes of a ring end when all have arrived.
    if (!out && def->has(kAsynchronous) && op->has_attr("ring_id")) {
      if (const auto group = comm::find_ring(op->attr<int32_t>("ring_id"))) out.emplace().number = group->rank();
    }
    if (!(def->is(kReceives) || def->is(kEndsStep))) continue;
    if (!out) out.emplace();
    out->number = op->attr<int32_t>("trainer_id");
    if (!def->is(kEndsStep) || op->attr<std::vector<std::string>>("endpoints").empty()) continue;
    ends = true;
    out->sync |= !op->attr<bool>("half_async");
  }
  if (!out) return out;
  out->in_step = ends && !servers.empty();
  out->sync |= out->in_step;  // Fluid's sync strategy says half_async, too
  out->servers = std::move(servers);
  return out;
}

bool replicas_are_independent(const ir::Program& program, const BuildStrategy& build, int replicas) {
  if (!build.async_mode || replicas == 1) return false;
  const auto trainer = trainer_of(program);
  return !trainer || !trainer->sync;
}

}  // namespace anabranch
