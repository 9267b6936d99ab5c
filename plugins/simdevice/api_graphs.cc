#include "process.h"

namespace anabranch::simdevice {
namespace {

int capture_begin(ab_queue* queue) {
  return locked([&](Machine& m, Lock&) {
    m.check_fault();
    ab_queue& q = m.queues.check(queue);
    need(!q.capture, q.text(), " is captured already");
    q.capture = std::make_shared<Capture>(q);
  });
}

int capture_end(ab_queue* queue, ab_graph** out) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    given(out, "out") = nullptr;
    *out = end_capture(m, q);
  });
}

int graph_launch(ab_graph* graph, ab_queue* queue) {
  return locked([&](Machine& m, Lock&) { launch_graph(m, m.graphs.check(graph), m.queues.check(queue)); });
}

int graph_free(ab_graph* graph) {
  return locked([&](Machine& m, Lock&) { free_graph(m, m.graphs.check(graph)); });
}

}  // namespace

void fill_graphs(ab_device_api& api) {
  api.capture_begin = capture_begin;
  api.capture_end = capture_end;
  api.graph_launch = graph_launch;
  api.graph_free = graph_free;
}

}  // namespace anabranch::simdevice
