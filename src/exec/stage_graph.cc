#include "exec/stage_graph.h"

#include <algorithm>

#include "exec/capture.h"

namespace anabranch {

void StageGraph::Seen::note_place(const void** address, int64_t* count) const {
  const auto* sparse = value->get<SelectedRows>();
  const Tensor* t = sparse ? &sparse->value : value->get<Tensor>();
  *address = t ? t->raw() : nullptr;
  *count = sparse && t->initialized() ? t->rows() : 0;
}

bool StageGraph::Seen::is_still_so() const {
  const void* address = nullptr;
  int64_t count = 0;
  note_place(&address, &count);
  return address == at && count == rows && signature.is_that_of(*value);
}

void StageGraph::record(const std::vector<const Value*>& values, const void* workspace) {
  drop();
  workspace_ = workspace;
  for (const Value* v : values) seen_.emplace_back(*v);
}

bool StageGraph::is_as_seen(const void* workspace) const {
  return !seen_.empty() && workspace == workspace_ &&
         std::all_of(seen_.begin(), seen_.end(), [](const Seen& s) { return s.is_still_so(); });
}

bool StageGraph::fits(const void* workspace) {
  if (!is_as_seen(workspace)) return false;
  return graph_ || ++calm_ >= patience_;
}

void StageGraph::drop() {
  if (graph_) patience_ = of_this_ < kPays ? std::min(patience_ * 2, kMostPatience) : 1;
  graph_.reset();
  seen_.clear();
  calm_ = of_this_ = 0;
}

bool StageGraph::capture(const device::Devices& devices, int device, const std::function<void(ab_queue*)>& put) {
  if (refused_.empty()) graph_ = anabranch::capture(devices, device, put, &refused_);
  return captured();
}

void StageGraph::launch(const device::Devices& devices, ab_queue* queue) {
  devices.check(devices.api().graph_launch(graph_.get(), queue), "launching a graph");
  ++launches_;
  of_this_ += of_this_ < kPays;
}

}  // namespace anabranch
