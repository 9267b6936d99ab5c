// The graph of a stage. It was captured with the addresses and shapes of one run, so it serves runs that find all its
// nodes' values as that one did; who finds others launches the nodes one by one, and looks again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/devices.h"
#include "exec/look.h"

namespace anabranch {

// Of a node on a device.
struct Capturable {
  const char* apart = nullptr;        // why no graph may hold it: "... an op"; null: one may
  std::vector<const Value*> touches;  // null for "none"
};

class StageGraph {
 public:
  // After a run node by node: so its values lie and look, and there the workspace of its queue is.
  void look(const std::vector<const Value*>& values, const void* workspace);
  // They still do, and have done so for long enough that capturing will pay.
  bool fits(const void* workspace);
  // There is a graph now; false: the plug-in refuses to make one.
  bool capture(const device::Devices& devices, int device, const std::function<void(ab_queue*)>& put);
  void launch(const device::Devices& devices, ab_queue* queue);
  // Whoever changes what the nodes are or use drops it before.
  void drop();

  bool captured() const { return graph_ != nullptr; }
  int64_t launches() const { return launches_; }           // of all graphs that there were
  const std::string& refused() const { return refused_; }  // why; empty: it is not

 private:
  struct Seen {
    explicit Seen(const Value& v) : value(&v), look(v) { note_place(&at, &rows); }
    bool is_still_so() const;
    void note_place(const void** address, int64_t* count) const;

    const Value* value;
    const void* at;
    int64_t rows;  // of sparse ones, which kernels decide when they are called: a look does not tell of them
    Look look;
  };
  static constexpr int kPays = 4, kMostPatience = 64;

  bool is_as_seen(const void* workspace) const;

  std::vector<Seen> seen_;
  const void* workspace_ = nullptr;
  std::shared_ptr<ab_graph> graph_;
  std::string refused_;
  int64_t launches_ = 0;
  int calm_ = 0;      // runs in a row that have found what was seen
  int patience_ = 1;  // how many it takes: the double after a graph that was launched too few times
  int of_this_ = 0;   // launches of this graph, up to kPays
};

}  // namespace anabranch
