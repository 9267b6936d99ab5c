// Runs a TileProgram on a piece of its tensors at a time, small enough for the first-level cache. Belongs to one
// kernel: run() is not called from two threads at once, but splits its work over the idle workers of the context.
#pragma once
#include <vector>

#include "opdef/op_def.h"
#include "ops/math/tile_program.h"

namespace anabranch::math {

class Tiles {
 public:
  explicit Tiles(const TileProgram& program);  // Unsupported for a step that has no tile loop

  // False, with nothing done, when a tensor is laid on another one in a way that tiles do not know.
  bool run(const KernelContext& c);

 private:
  static constexpr int kOperands = fused::kMaxInputs + fused::kMaxSteps;

  struct Step {
    TileLoop loop;
    int count = 0;
    int args[fused::kMaxArgs] = {};
  };
  struct Input {
    bool used = false;
    bool whole_only = false;  // a step wants it in the shape of the results
    int axis = -1;            // where it is laid when it is smaller
    bool smaller = false;     // at present
    Spread form;
  };
  struct Piece {
    int64_t begin, end, tile;
    float* room;  // of the inputs that are repeated
  };

  void note_use(const TileStep& step, size_t arg);
  void put_chain_in_result();
  void assign_buffers();
  bool fits(const KernelContext& c, const Shape& whole);
  void run_piece(const KernelContext& c, int64_t begin, int64_t end) const;
  void lay_inputs(const KernelContext& c, const Piece& piece, int64_t at, int64_t n, const float** from) const;

  int inputs_, buffers_ = 0, smaller_ = 0;
  int64_t grain_ = 0;
  std::vector<int32_t> outs_;
  std::vector<Step> steps_;
  Input input_[fused::kMaxInputs];
  int buffer_of_[kOperands];         // of results that are not left in memory; -1: none
  int last_reader_[kOperands] = {};  // step
  bool in_result_[kOperands] = {};   // made where the last output will be
};

}  // namespace anabranch::math
