// The values of one iteration of a sub-block. A frame belongs to a frame of the outer block, so its ops see the same
// outer variables in each use. Frames are created on demand and reused.
#pragma once
#include <memory>
#include <vector>

#include "exec/signature.h"

namespace anabranch {

struct BlockFrame;

// Shape and kind of a variable at some time: enough to create zeros like it.
class ShapeNote {
 public:
  ShapeNote() = default;
  void take(const Value& value);
  void make_zeros(Value& out) const;  // does nothing if the variable held nothing

 private:
  enum class Held : char { kNothing, kTensor, kArray };
  Held held_ = Held::kNothing;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  LoDRef lod_;
};

// The frames of one block inside one frame of the outer block.
struct FrameStack {
  std::vector<std::unique_ptr<BlockFrame>> frames;
  std::vector<ShapeNote> before;  // before the first iteration
  int iterations = 0;             // of the current run, or of the last one
};

// Signatures of the values in the last iteration on a frame. An iteration that finds the same ones runs no shape
// functions except those of nodes whose shapes depend on values.
struct FrameSignatures {
  std::vector<Signature> signatures;  // by position (block_code.h)
  std::vector<char> noted;            // by position: recorded in this iteration
  bool alike = false;                 // so far each value kept its signature during the whole iteration
  bool steady = false;                // and the iteration has ended
  bool in_place = false;              // nodes with an input as output work in place
  uint32_t choices = 0;               // of kernels in that iteration
};

struct BlockFrame {
  explicit BlockFrame(size_t vars, size_t blocks) : values(std::make_unique<Value[]>(vars)), inner(blocks) {}
  std::unique_ptr<Value[]> values;  // of the block's variables
  std::vector<Value*> places;       // all values that its ops use, each once
  std::vector<Value*> args;         // the targets of the ops' handles
  std::vector<FrameStack> inner;    // of the blocks that ops of this one run
  std::vector<ShapeNote> after;     // after this iteration
  FrameSignatures last;
  int lent = 0;  // memory of its private values (block_memory.h)
};

}  // namespace anabranch
