#include "graph/trainers.h"

#include <algorithm>

#include "comm/group.h"
#include "opdef/op_def.h"
#include "rpc/mode.h"

namespace anabranch {
namespace {

bool names_worker(const OpDef& def) { return def.is(kReceives) || def.is(kEndsStep); }

// Calls use(op) for each op that receives from servers or ends a step.
template <class Use> void each_naming(const ir::Program& program, const Use& use) {
  for (const auto& op : program.global_block().ops()) {
    const OpDef* def = find_op_or_null(op->type);
    if (def && names_worker(*def)) use(*op);
  }
}

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
    if (!names_worker(*def)) continue;
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

std::set<int> workers_of(const ir::Program& program) {
  std::set<int> out;
  each_naming(program, [&](const ir::Op& op) { out.insert(op.attr<int32_t>("trainer_id")); });
  return out;
}

std::set<std::pair<int, std::string>> servers_of(const ir::Program& program) {
  std::set<std::pair<int, std::string>> out;
  each_naming(program, [&](const ir::Op& op) {
    if (!op.has_attr("endpoints")) return;
    for (const auto& server : op.attr<std::vector<std::string>>("endpoints")) {
      out.emplace(op.attr<int32_t>("trainer_id"), server);
    }
  });
  return out;
}

bool starts_geo(const ir::Program& program) {
  const auto& ops = program.global_block().ops();
  const OpDef* def = ops.empty() ? nullptr : find_op_or_null(ops.back()->type);
  return def && def->is(kSends) &&
         ops.back()->attr<std::vector<std::string>>("send_varnames") == std::vector<std::string>{rpc::kGeoStart};
}

bool replicas_are_independent(const ir::Program& program, const BuildStrategy& build, int replicas) {
  if (!build.async_mode || replicas == 1) return false;
  const auto trainer = trainer_of(program);
  return !trainer || !trainer->sync;
}

}  // namespace anabranch
