#include "handles.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

// Any thread may put work into captured queues and end the capture, which only the relaxed mode allows.
int capture_begin(ab_queue* queue) {
  return working([&](Process&) {
    const ab_queue& q = given(queue, "queue");
    use_device(q.device);
    well(cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeRelaxed), "beginning a capture");
  });
}

struct GraphFree {
  void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
};

int capture_end(ab_queue* queue, ab_graph** out) {
  return called([&](Process& p) {
    const ab_queue& q = given(queue, "queue");
    given(out, "out") = nullptr;
    use_device(q.device);
    cudaGraph_t captured = nullptr;
    const cudaError_t error = cudaStreamEndCapture(q.stream, &captured);
    const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, GraphFree> owner(captured);
    if (error == cudaErrorStreamCaptureUnjoined) {
      (void)cudaGetLastError();
      fail(AB_INVALID_ARGUMENT, q.text(), " did not wait for another queue that had joined its capture");
    }
    well(error, "ending a capture");
    need(captured != nullptr, q.text(), " was not captured");
    auto graph = std::make_unique<ab_graph>(ab_graph{q.device});
    well(cudaGraphInstantiate(&graph->graph, captured, 0), "making a graph");
    p.made(Thing::kGraphs);
    *out = graph.release();
  });
}

int graph_launch(ab_graph* graph, ab_queue* queue) {
  return working([&](Process&) {
    const ab_graph& g = given(graph, "graph");
    const ab_queue& q = given(queue, "queue");
    need(g.device == q.device, "a graph of device ", g.device, " is put into a queue of device ", q.device);
    use_device(q.device);
    well(cudaGraphLaunch(g.graph, q.stream), "launching a graph");
  });
}

int graph_free(ab_graph* graph) {
  return called([&](Process& p) {
    p.freed(Thing::kGraphs, cudaGraphExecDestroy(given(graph, "graph").graph), "freeing a graph");
    delete graph;
  });
}

}  // namespace

void fill_graphs(ab_device_api& api) {
  api.capture_begin = capture_begin;
  api.capture_end = capture_end;
  api.graph_launch = graph_launch;
  api.graph_free = graph_free;
}

}  // namespace anabranch::cuda
