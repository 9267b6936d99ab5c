// Queries of a step: fetched values, how it runs, its memory.
#include <fmt/format.h>

#include "base/counted.h"
#include "engine/step.h"

namespace anabranch {

std::vector<Fetched> Step::collect() const {
  std::vector<Fetched> out;
  for (size_t f = 0; f < fetches_.values().size(); ++f) out.push_back(collect(f));
  return out;
}

std::string Step::explain_copies() const {
  int64_t count[2] = {}, bytes[2] = {};  // up, down
  for (const GraphNode& node : graph_.nodes) {
    if (node.from.on_host() == node.place.on_host()) continue;
    const Tensor* made = lowered_.values[node.outs[0]]->get<Tensor>();
    const int down = node.place.on_host();
    ++count[down];
    bytes[down] += made ? static_cast<int64_t>(made->bytes()) : 0;
  }
  if (count[0] + count[1] == 0) return "";
  std::vector<std::string> places;
  for (const Place p : compile_.places) places.push_back(p.str());
  return fmt::format("  a step on {} copies {} to devices ({}) and {} from them ({})\n", fmt::join(places, ", "),
                     counted(bytes[0], "byte"), counted(count[0], "tensor"), bytes[1], count[1]);
}

// The passes run once more, because a step collects near misses only if it is explained.
std::string Step::explain_near_misses() const {
  constexpr size_t kMost = 20;
  if (options_.program->version() != version_) return "";  // it is another program by now
  std::vector<PassReport> passes;
  std::vector<std::string> near_misses;
  make_graph(&passes, &near_misses);
  if (near_misses.empty()) return "";
  std::string text = "  near misses: ops that a pass does not fuse for one reason\n";
  for (size_t i = 0; i < near_misses.size() && i < kMost; ++i) text += fmt::format("      {}\n", near_misses[i]);
  if (near_misses.size() > kMost) text += fmt::format("      and {} more\n", near_misses.size() - kMost);
  return text;
}

std::string Step::explain() const {
  std::string text =
      fmt::format("{} on {} ({} with work), {}, {}\n", counted(lowered_.plan->size(), "node"),
                  counted(compile_.replicas, "replica"), key_.active, counted(pool_->workers(), "thread"),
                  lowered_.plan->is_chain() ? "a chain: run in order" : "a graph");
  text += layout_->explain();
  if (!options_.disable.empty()) {
    text += fmt::format("  passes are disabled for this step: they reject these shapes ({})\n", options_.disable);
    if (compile_.on_devices()) text += "  place_on_devices is one of them: the CPU runs all ops\n";
  }
  for (const auto& p : passes_) text += fmt::format("  {:<16} {}\n", p.name, p.outcome);
  text += explain_near_misses();
  text += explain_copies();
  if (state_->queues()) text += state_->queues()->explain_graphs();
  text += lowered_.explain_blocks;
  BlockSet::Bytes in_blocks;
  for (const auto& set : lowered_.blocks) {
    const BlockSet::Bytes of_one = set->private_bytes();
    in_blocks.held += of_one.held;
    in_blocks.unshared += of_one.unshared;
  }
  if (!lowered_.blocks.empty()) {
    text += fmt::format("  memory of temporaries in blocks: {} bytes, {} without sharing\n", in_blocks.held,
                        in_blocks.unshared);
  }
  return text;
}

void Step::add_memory(std::vector<MemoryUse>* out) const {
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    const auto kind = var.desc.persistable ? MemoryUse::kKept : MemoryUse::kTemporary;
    if (lowered_.values[v]) anabranch::add_memory(*lowered_.values[v], var.name, var.replica, kind, out);
  }
  for (size_t r = 0; r < lowered_.blocks.size(); ++r) {
    lowered_.blocks[r]->each_value([&](const std::string& name, const Value& value) {
      anabranch::add_memory(value, name, static_cast<int>(r), MemoryUse::kTemporary, out);
    });
  }
  feeds_.add_memory(key_.feeds, out);
}

}  // namespace anabranch
