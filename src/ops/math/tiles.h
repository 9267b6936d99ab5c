// Runs a TileProgram on one tile of its tensors at a time, small enough for the L1 cache. Owned by one kernel: run()
// must not be called concurrently; it splits its work over the idle workers of the context.
#pragma once
#include <vector>

#include "opdef/op_def.h"
#include "ops/math/input_forms.h"
#include "ops/math/tile_program.h"

namespace anabranch::math {

class Tiles {
 public:
  // At most kMaxSteps steps. Unsupported for a step without a tile loop.
  explicit Tiles(const TileProgram& program);

  // Returns false and does nothing if a tensor is broadcast in a way that tiles do not support.
  bool run(const KernelContext& c);

 private:
  static constexpr int kOperands = fused::kMaxInputs + fused::kMaxSteps;

  struct Step {
    TileLoop loop;
    int count = 0;
    int args[fused::kMaxArgs] = {};
  };
  struct Chunk {
    int64_t begin, end, tile;
    float* room;  // for repeated inputs
  };

  void put_chain_in_result();
  void assign_buffers();
  void run_chunk(const KernelContext& c, int64_t begin, int64_t end) const;
  void lay_inputs(const KernelContext& c, const Chunk& chunk, int64_t at, int64_t n, const float** from) const;

  int inputs_, buffers_ = 0;
  int64_t grain_ = 0;
  std::vector<int32_t> outs_;
  std::vector<Step> steps_;
  InputForms forms_;
  int buffer_of_[kOperands];         // of results that are not outputs; -1: none
  int last_reader_[kOperands] = {};  // step
  bool in_result_[kOperands] = {};   // computed in the memory of the last output
};

}  // namespace anabranch::math
