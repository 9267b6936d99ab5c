// The layout of a plan: shapes, memory of temporaries, and the devices of the values outside of the plan. It is valid
// as long as these values keep their shape, dtype, LoD and device; then it is made again. One caller at a time.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/value.h"
#include "engine/compiled_program.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
#include "exec/run.h"
#include "graph/pass.h"

namespace anabranch {

class Layout {
 public:
  enum class Made {
    kReady,
    kElsewhere,  // a persistent value is not on the device that the plan needs: move_into_place() and make it again
    kRefused,    // nodes that passes created or changed refuse the shapes: run the program without these passes
  };

  // All of them outlive this; `fetches` names the step in errors.
  struct Of {
    const Graph& graph;
    Lowered& lowered;
    RunState& state;
    const std::vector<PassReport>& passes;
    const CompileOptions& options;
    const std::vector<std::string>& fetches;
  };
  explicit Layout(const Of& of);

  // Whether an outside value has changed its form since the last call, or since the layout was made.
  bool outside_changed();
  // Whether it was made, and the values that outside_changed() does not watch are where they were then.
  bool holds() const { return laid_out_ && !unwatched_moved(); }
  // Infers all shapes and places the temporaries. `parallel`: nodes may run concurrently. Throws an error of the user's
  // own ops.
  Made make(bool parallel);
  const std::string& refusal() const { return refusal_; }  // why the last make() was refused
  void move_into_place();  // moves persistent values to where the plan needs them, while no other thread uses them
  void drop();             // frees the memory of temporaries; the layout no longer holds

  int64_t temporary_bytes() const;
  std::string explain() const;

 private:
  struct Watched {
    Value* value;
    Form form;  // for which the layout was made
  };

  bool unwatched_moved() const;
  void check_declared() const;
  void place_temporaries(bool at_once);
  void refuse(const Error& error);

  const Of of_;
  std::vector<Watched> watched_;  // values outside of the plan: others may change them between runs
  std::vector<int> declared_;     // outside variables that must match their declaration, because passes rely on it
  std::vector<std::pair<const Value*, Place>> unwatched_;  // other outside values, and their places in the plan
  std::vector<Temporary> shareable_;
  MemoryPlan memory_;
  std::string refusal_;
  bool laid_out_ = false;
};

}  // namespace anabranch
