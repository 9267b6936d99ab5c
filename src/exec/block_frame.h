// The values of one turn of a sub-block. A frame belongs to a frame of the block around it, so the variables that its
// ops see outside are the same in each use of it. Frames are made when they are needed first and used again.
#pragma once
#include <memory>
#include <vector>

#include "exec/look.h"

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

// How the values looked in the last turn on a frame. A turn that finds them so runs no shape functions but those of
// nodes whose shapes depend on values.
struct FrameLooks {
  std::vector<Look> looks;  // by place (block_code.h)
  std::vector<char> noted;  // by place: in this turn
  bool alike = false;       // each value looked the same for the whole turn, so far
  bool steady = false;      // and the turn has ended
  bool in_place = false;    // what nodes make of an input they make in its place
  uint32_t choices = 0;     // of kernels, that the turn was run with
};

struct BlockFrame {
  explicit BlockFrame(size_t vars, size_t blocks) : values(std::make_unique<Value[]>(vars)), inner(blocks) {}
  std::unique_ptr<Value[]> values;  // of the block's variables
  std::vector<Value*> places;       // all that its ops see, each once
  std::vector<Value*> args;         // and what they see through their handles
  std::vector<FrameStack> inner;    // of the blocks that ops of this one run
  std::vector<ShapeNote> after;     // this turn
  FrameLooks last;
  int lent = 0;  // which memory its private values lie in (block_memory.h)
};

}  // namespace anabranch
