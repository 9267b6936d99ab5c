// Captured work: what was put into queues between capture_begin() and capture_end(), kept to be put in again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "clock.h"
#include "work.h"

namespace anabranch::simdevice {

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  struct Node {
    size_t lane;
    Item item;
    uint64_t asof;
    const std::string* label;
  };
  struct Lane {
    ab_queue* queue;
    Clock clock;  // of what is captured, by lanes
  };

  explicit Capture(ab_queue& origin) : lanes_{{&origin, {}}} {}

  void add(Machine& machine, ab_queue& queue, Item item);
  void join(ab_queue& queue);
  void breaks(const std::string& why) {  // the first reason stays
    if (broken_.empty()) broken_ = why;
  }
  // Lets its queues go. InvalidArgument when a rule was broken or a queue was not waited for.
  void end(const ab_queue& origin);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Lane>& lanes() const { return lanes_; }  // the first one is where it began

 private:
  std::vector<Lane> lanes_;
  std::vector<Node> nodes_;
  std::string broken_;
};

}  // namespace anabranch::simdevice

struct ab_graph {
  std::vector<anabranch::simdevice::Capture::Node> nodes;
  std::vector<ab_queue*> lanes;  // its own queues; the first one, null, stands for that of the launch
  int device;
  anabranch::simdevice::RecordPtr last;  // the end of its last launch
};

namespace anabranch::simdevice {

ab_graph* end_capture(Machine& machine, ab_queue& queue);
void launch_graph(Machine& machine, ab_graph& graph, ab_queue& queue);
void free_graph(Machine& machine, ab_graph& graph);

}  // namespace anabranch::simdevice
