// The values of one turn of a sub-block. A frame belongs to a frame of the block around it, so the variables that its
// ops see outside are the same in each use of it. Frames are made when they are needed first and used again.
#pragma once
#include <memory>
#include <vector>

#include "core/value.h"

namespace anabranch {

struct BlockFrame;

// What a variable looked like at a time: enough to make zeros like it.
class ShapeNote {
 public:
  ShapeNote() = default;
  void take(const Value& value);
  void make_zeros(Value& out) const;  // nothing where the variable held nothing

 private:
  enum class Held : char { kNothing, kTensor, kArray };
  Held held_ = Held::kNothing;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  LoDRef lod_;
};

// The frames of one block inside one frame of the block around it.
struct FrameStack {
  std::vector<std::unique_ptr<BlockFrame>> frames;
  std::vector<ShapeNote> before;  // the first turn
  int turns = 0;                  // of the run that is under way, or was the last one
};

struct BlockFrame {
  explicit BlockFrame(size_t vars, size_t blocks) : values(std::make_unique<Value[]>(vars)), inner(blocks) {}
  std::unique_ptr<Value[]> values;  // of the block's variables
  std::vector<Value*> args;         // what the ops of the block see through their handles
  std::vector<FrameStack> inner;    // of the blocks that ops of this one run
  std::vector<ShapeNote> after;     // this turn
};

}  // namespace anabranch
