// The memory that all iterations of a block share: tensors that live at one time do not overlap, frames have the same
// layout, and a tensor that is not the frame's, or has outgrown its range, is left alone.
#include "exec/block_memory.h"

#include <gtest/gtest.h>

namespace anabranch {
namespace {

// Three tensors: the first two live at the same time, the third after the first.
struct Block {
  Block() { memory.set_uses({{{0}, 0, 1}, {{1}, 1, 2}, {{2}, 2, 3}}); }

  BlockFrame& frame() {
    BlockFrame& made = *frames.emplace_back(std::make_unique<BlockFrame>(3, 0));
    for (size_t i = 0; i < 3; ++i) made.places.push_back(&made.values[i]);
    return made;
  }
  // An iteration that makes all of them.
  void iteration(BlockFrame& frame, int64_t elems) {
    memory.lend(frame);
    for (Value* v : frame.places) v->as<Tensor>().resize(Shape{elems}, DType::kUInt8);
    memory.settle(frame);
  }

  BlockMemory memory;
  std::vector<std::unique_ptr<BlockFrame>> frames;
};

const char* at(const BlockFrame& frame, size_t i) {
  return static_cast<const char*>(frame.values[i].get<Tensor>()->raw());
}

TEST(BlockMemory, FramesShareMemoryOfDisjointLifetimes) {
  Block block;
  BlockFrame &first = block.frame(), &second = block.frame();
  block.iteration(first, 1000);
  EXPECT_EQ(block.memory.bytes(), 2 * 1024);
  EXPECT_EQ(block.memory.unshared_bytes(), 3 * 1024);
  EXPECT_NE(at(first, 0), at(first, 1));
  EXPECT_EQ(at(first, 0), at(first, 2));
  const int64_t before = resident_buffer_bytes();
  block.iteration(second, 1000);
  EXPECT_EQ(resident_buffer_bytes(), before) << "a frame that comes later takes no memory itself";
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(at(first, i), at(second, i));
}

TEST(BlockMemory, AFrameThatHasRunBeforeMovesIntoALargerArena) {
  Block block;
  BlockFrame &first = block.frame(), &second = block.frame();
  const int64_t before = resident_buffer_bytes();
  block.iteration(first, 1000);
  block.iteration(second, 5000);
  EXPECT_NE(at(first, 0), at(second, 0));
  block.iteration(first, 1000);
  EXPECT_EQ(at(first, 0), at(second, 0));
  EXPECT_EQ(resident_buffer_bytes(), before + block.memory.bytes()) << "the smaller one is still held";
  EXPECT_EQ(first.values[0].get<Tensor>()->numel(), 1000);
}

TEST(BlockMemory, AViewStaysAView) {
  Block block;
  BlockFrame& frame = block.frame();
  block.iteration(frame, 1000);
  char rows[64] = {};
  BlockFrame& other = block.frame();
  other.values[0].as<Tensor>().view(rows, Shape{2, 3}, DType::kUInt8, nullptr, 32);
  block.memory.lend(other);
  EXPECT_EQ(at(other, 0), rows);
  EXPECT_EQ(at(other, 1), at(frame, 1));
  block.memory.settle(other);
  EXPECT_EQ(at(other, 0), rows);
}

TEST(BlockMemory, ValuesOfAFailedIterationStayUntilAnIterationEnds) {
  Block block;
  BlockFrame &failed = block.frame(), &other = block.frame();
  block.iteration(failed, 1000);
  failed.values[0].as<Tensor>().resize(Shape{9000}, DType::kUInt8);  // and the iteration ends here
  block.iteration(other, 2000);
  block.memory.lend(failed);
  EXPECT_NE(at(failed, 0), at(other, 0)) << "9000 bytes do not fit";
  EXPECT_EQ(at(failed, 1), at(other, 1));
  block.iteration(failed, 1000);
  EXPECT_EQ(failed.values[0].get<Tensor>()->numel(), 1000);
}

TEST(BlockMemory, ValuesThatAreNotTensorsAreLeftAlone) {
  Block block;
  BlockFrame &first = block.frame(), &second = block.frame();
  block.iteration(first, 1000);
  second.values[1].as<TensorArray>().resize(2);
  block.memory.lend(second);
  EXPECT_TRUE(second.values[1].is<TensorArray>());
  EXPECT_EQ(at(second, 0), at(first, 0));
}

TEST(BlockMemory, DroppingResetsIt) {
  Block block;
  const int64_t before = resident_buffer_bytes();
  block.iteration(block.frame(), 1000);
  block.frames.clear();
  block.memory.drop();
  EXPECT_EQ(resident_buffer_bytes(), before);
  BlockFrame& frame = block.frame();
  block.iteration(frame, 1000);
  EXPECT_EQ(block.memory.bytes(), 2 * 1024);
  EXPECT_EQ(at(frame, 0), at(frame, 2));
}

}  // namespace
}  // namespace anabranch
