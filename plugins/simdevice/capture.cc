#include "capture.h"

#include <unordered_map>

#include "put.h"

namespace anabranch::simdevice {
namespace {

size_t lane_of(const std::vector<Capture::Lane>& lanes, const ab_queue& queue) {
  size_t lane = 0;
  while (lanes[lane].queue != &queue) ++lane;
  return lane;
}

}  // namespace

void Capture::join(ab_queue& queue) {
  queue.capture = shared_from_this();
  lanes_.push_back({&queue, {}});
}

void Capture::add(Machine& machine, ab_queue& queue, Item item) {
  const size_t lane = lane_of(lanes_, queue);
  Clock& clock = lanes_[lane].clock;
  if (item.kind == Item::Kind::kWait) {
    if (item.record->capture.lock().get() != this) {
      breaks(said(queue.text(), " waits for an event that was recorded outside of the capture"));
      fail(AB_INVALID_ARGUMENT, broken_);
    }
    clock.join(item.record->clock);
  }
  clock.advance(static_cast<int>(lane));
  if (item.kind == Item::Kind::kRecord) {
    item.record->captured = true;
    item.record->capture = weak_from_this();
    item.record->clock = clock;
  }
  const std::string* label = machine.name(queue, item);
  nodes_.push_back({lane, std::move(item), machine.next_number(), label});
}

void Capture::end(const ab_queue& origin) {
  need(&origin == lanes_[0].queue, "the capture was begun by ", lanes_[0].queue->text(), ", not by ", origin.text());
  for (const Lane& lane : lanes_) lane.queue->capture = nullptr;
  need(broken_.empty(), broken_);
  for (size_t lane = 1; lane < lanes_.size(); ++lane) {
    const int at = static_cast<int>(lane);
    need(lanes_[0].clock.of(at) >= lanes_[lane].clock.of(at), lanes_[lane].queue->text(), " was captured, and ",
         origin.text(), " does not wait for it");
  }
}

ab_graph* end_capture(Machine& machine, ab_queue& queue) {
  need(queue.capture != nullptr, queue.text(), " is not captured");
  const std::shared_ptr<Capture> capture = queue.capture;
  capture->end(queue);
  auto graph = std::make_unique<ab_graph>();
  graph->nodes = capture->nodes();
  graph->device = queue.device;
  graph->lanes.push_back(nullptr);
  for (size_t lane = 1; lane < capture->lanes().size(); ++lane) {
    const ab_queue& like = *capture->lanes()[lane].queue;
    auto own = std::make_unique<ab_queue>();
    own->id = machine.next_queue();
    own->device = like.device;
    own->name = like.name + " (graph)";
    graph->lanes.push_back(machine.queues.add(std::move(own)));
  }
  return machine.graphs.add(std::move(graph));
}

void launch_graph(Machine& machine, ab_graph& graph, ab_queue& queue) {
  machine.check_fault();
  need(!queue.capture, "a graph is launched into ", queue.text(), ", which is captured");
  need(queue.device == graph.device, "a graph of device ", graph.device, " is launched into ", queue.text());
  const Comms::GraphBracket bracket;
  if (graph.last) machine.append(queue, item_of(Item::Kind::kWait, graph.last));
  // Other lanes begin with a wait for a record of the first one, by which they joined the capture.
  std::unordered_map<const Record*, RecordPtr> records;  // of the capture -> of this launch
  for (const Capture::Node& node : graph.nodes) {
    Item item = node.item;
    if (item.record) {
      auto& record = records[item.record.get()];
      if (!record) record = std::make_shared<Record>();
      item.record = record;
    }
    machine.append(graph.lanes[node.lane] ? *graph.lanes[node.lane] : queue, std::move(item), node.asof, node.label);
  }
  graph.last = std::make_shared<Record>();
  machine.append(queue, item_of(Item::Kind::kRecord, graph.last));
}

void free_graph(Machine& machine, ab_graph& graph) {
  need(!graph.last || graph.last->passed || machine.faulted(), "a graph is freed before it has passed");
  for (ab_queue* lane : graph.lanes) {
    if (lane) machine.queues.remove(*lane);
  }
  machine.graphs.remove(graph);
}

}  // namespace anabranch::simdevice
