#include "engine/server_waits.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "opdef/op_def.h"
#include "ps/trainers.h"

namespace anabranch {
namespace {

struct Servers {
  int trainer = 0;
  std::vector<std::string> endpoints;  // each once
};

// The attributes in which ops list servers.
constexpr const char* kServers[] = {"epmap", "endpoints", "servers"};

Servers servers_of(const ir::Op& op) {
  Servers out;
  if (!op.has_attr("trainer_id")) return out;
  out.trainer = op.attr<int32_t>("trainer_id");
  for (const char* name : kServers) {
    if (!op.has_attr(name)) continue;
    for (const auto& endpoint : op.attr<std::vector<std::string>>(name)) {
      if (std::find(out.endpoints.begin(), out.endpoints.end(), endpoint) == out.endpoints.end()) {
        out.endpoints.push_back(endpoint);
      }
    }
  }
  return out;
}

std::string waits_of(const Servers& servers) {
  const auto client = ps::find_client(servers.trainer);
  std::string text;
  for (const auto& endpoint : servers.endpoints) {
    const auto wait = client ? client->oldest_wait(endpoint) : std::nullopt;
    if (!wait) continue;
    text += fmt::format("\n    waits for the server at {}: no answer to {} for {:.1f} s", endpoint,
                        rpc::verb_name(wait->verb), wait->seconds);
    if (wait->attempts > 1) text += fmt::format(", {} attempts", wait->attempts);
  }
  return text;
}

}  // namespace

std::function<std::string(int)> with_server_waits(const Graph& graph, std::function<std::string(int)> describe) {
  std::map<int, Servers> servers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Op& op = *graph.nodes[i].op;
    if (!find_op(op.type).has(kAsynchronous)) continue;
    if (Servers found = servers_of(op); !found.endpoints.empty()) servers[static_cast<int>(i)] = std::move(found);
  }
  if (servers.empty()) return describe;
  return [servers = std::move(servers), describe = std::move(describe)](int node) {
    const auto it = servers.find(node);
    return it == servers.end() ? describe(node) : describe(node) + waits_of(it->second);
  };
}

}  // namespace anabranch
