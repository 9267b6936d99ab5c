#include "engine/step_memory.h"

#include <algorithm>

namespace anabranch {
namespace {

int64_t bytes_of(const Temporary& t) {
  const Tensor* tensor = t.value->get<Tensor>();
  return tensor ? static_cast<int64_t>(tensor->bytes()) : 0;
}

// The first node at which the most bytes are alive; -1 if there are no nodes.
int peak_of(const std::vector<const Temporary*>& temporaries, size_t nodes) {
  std::vector<int64_t> change(nodes + 1, 0);
  for (const Temporary* t : temporaries) {
    change[static_cast<size_t>(t->first)] += bytes_of(*t);
    change[static_cast<size_t>(t->last) + 1] -= bytes_of(*t);
  }
  int peak = -1;
  int64_t alive = 0, most = -1;
  for (size_t i = 0; i < nodes; ++i) {
    alive += change[i];
    if (alive <= most) continue;
    most = alive;
    peak = static_cast<int>(i);
  }
  return peak;
}

std::string name_of(const Temporary& t, const Graph& graph, const Lowered& lowered) {
  for (size_t v = 0; v < graph.vars.size(); ++v) {
    if (lowered.values[v] == t.value) return graph.vars[v].name;
  }
  return "a temporary";
}

}  // namespace

std::string made_by(const Graph& graph, int node) {
  constexpr int kNamed = 3;
  std::string names;
  int more = -kNamed;
  for (const int v : graph.nodes[static_cast<size_t>(node)].outs) {
    if (v >= 0 && ++more <= 0) names += (names.empty() ? "" : ", ") + graph.vars[static_cast<size_t>(v)].name;
  }
  return more > 0 ? fmt::format("{} and {} more", names, more) : names;
}

Error without_room(Error error, Place place, const Graph& graph, const Lowered& lowered,
                   const std::vector<Temporary>& temporaries) {
  std::vector<const Temporary*> there;
  for (const Temporary& t : temporaries) {
    if (t.place == place && bytes_of(t) > 0) there.push_back(&t);
  }
  const int node = peak_of(there, graph.nodes.size());
  if (node < 0) return error;
  std::erase_if(there, [&](const Temporary* t) { return t->first > node || t->last < node; });
  std::stable_sort(there.begin(), there.end(), [](auto* a, auto* b) { return bytes_of(*a) > bytes_of(*b); });
  error.in_op(lowered.types[static_cast<size_t>(node)]).with_op(lowered.describe[static_cast<size_t>(node)]);
  error.with_while(fmt::format("giving temporaries memory at {}: this op needs most of them at once", place.str()));
  constexpr size_t kTold = 5;
  for (size_t i = 0; i < std::min(there.size(), kTold); ++i) {
    const Tensor* t = there[i]->value->get<Tensor>();
    error.with_note(fmt::format("needs  {:>12} bytes: {} {} {}", bytes_of(*there[i]),
                                name_of(*there[i], graph, lowered), t->shape().str(), dtype_name(t->dtype())));
  }
  return error;
}

}  // namespace anabranch
