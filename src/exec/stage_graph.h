// The graph of a stage. It was captured with the addresses and shapes of one run, so it serves runs in which its nodes'
// values are unchanged; otherwise the nodes are launched one by one, and their values are recorded again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/devices.h"
#include "exec/signature.h"

namespace anabranch {

// A node on a device.
struct Capturable {
  const char* apart = nullptr;        // why no graph may contain it: "... an op"; null: it may
  std::vector<const Value*> touches;  // null for "none"
};

class StageGraph {
 public:
  // After a run node by node: records the addresses and signatures of its values, and the address of its queue's
  // workspace.
  void record(const std::vector<const Value*>& values, const void* workspace);
  // They are unchanged, and have been for long enough that capturing pays.
  bool fits(const void* workspace);
  // There is a graph now; false: the plug-in refuses to create one.
  bool capture(const device::Devices& devices, int device, const std::function<void(ab_queue*)>& put);
  void launch(const device::Devices& devices, ab_queue* queue);
  // Call it before changing the nodes or the values they use.
  void drop();

  bool captured() const { return graph_ != nullptr; }
  int64_t launches() const { return launches_; }           // of all graphs so far
  const std::string& refused() const { return refused_; }  // the reason; empty: not refused

 private:
  struct Seen {
    explicit Seen(const Value& v) : value(&v), signature(v) { note_place(&at, &rows); }
    bool is_still_so() const;
    void note_place(const void** address, int64_t* count) const;

    const Value* value;
    const void* at;
    int64_t rows;  // of sparse ones; kernels choose them when they run, so a signature does not include them
    Signature signature;
  };
  static constexpr int kPays = 4, kMostPatience = 64;

  bool is_as_seen(const void* workspace) const;

  std::vector<Seen> seen_;
  const void* workspace_ = nullptr;
  std::shared_ptr<ab_graph> graph_;
  std::string refused_;
  int64_t launches_ = 0;
  int calm_ = 0;      // consecutive runs with unchanged values
  int patience_ = 1;  // how many are required: doubled after a graph with too few launches
  int of_this_ = 0;   // launches of this graph, up to kPays
};

}  // namespace anabranch
