// Kernels come in two stages. A factory runs once, when a plan is made: it reads attributes, resolves slot names to
// handles and returns the kernel. The kernel runs every step: it sees tensors through the handles and touches no name,
// no map and no heap.
//
//   []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
//     const In x = op.in("X");
//     const Out out = op.out("Out");
//     const float alpha = op.attr<float>("alpha");
//     return [=](KernelContext& c) { leaky_relu(c[x].data<T>(), alpha, c[out].mutable_data<T>(), c[x].numel()); };
//   }
//
// Output tensors have their shape, dtype and memory before the kernel runs (the shape function gave them); sparse and
// array outputs are filled by the kernel.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "core/value.h"
#include "ir/op.h"
#include "opdef/kernel.h"

namespace anabranch {

class OpDef;

struct In {  // handle of an input slot: offset and number of its arguments
  int first = 0, count = 0;
  explicit operator bool() const { return count > 0; }  // an optional input that is present
};
struct Out {
  int first = 0, count = 0;
  explicit operator bool() const { return count > 0; }
};

// Identity of a random draw: the same (seed, stream, step, replica) gives the same numbers on any number of threads.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;  // number of the op in its program, in the low half; the high half is for workers
  uint32_t step = 0, replica = 0;
  uint64_t iterations = 0;  // of the loops around the op, mixed; 0 outside of loops
  bool repeats = false;     // the same numbers in each step and on each replica
};

// Whether a KernelContext is the base of an IterationContext: true for that object only, not for copies of the base.
class IterationMark {
 public:
  IterationMark() = default;
  IterationMark(const IterationMark&) {}
  IterationMark& operator=(const IterationMark&) { return *this; }
  void set() { on_ = true; }
  explicit operator bool() const { return on_; }

 private:
  bool on_ = false;
};

class KernelContext {
 public:
  // Set when the plan is created; constant in a step except for `step`.
  Value* const* ins = nullptr;
  Value* const* outs = nullptr;  // null if the op writes kEmptyVar
  Parallel* parallel = nullptr;
  uint32_t step = 0;
  int16_t replica = 0;
  // The dynamic type: this, an AsyncContext (completion.h), a DeviceContext (device_context.h).
  enum class Call : uint8_t { kPlain, kLater, kQueued };
  Call call = Call::kPlain;
  IterationMark in_iteration;

  const Tensor& operator[](In in) const { return ins[in.first]->tensor(); }
  Tensor& operator[](Out out) const { return outs[out.first]->as<Tensor>(); }
  const Tensor& at(In in, int i) const { return ins[in.first + i]->tensor(); }
  Tensor& at(Out out, int i) const { return outs[out.first + i]->as<Tensor>(); }
  const Value& value(In in, int i = 0) const { return *ins[in.first + i]; }
  Value& value(Out out, int i = 0) const { return *outs[out.first + i]; }
  bool needs(Out out, int i = 0) const { return out.count > i && outs[out.first + i] != nullptr; }

  // fn(begin, end) over chunks of [0, n) of at least `grain` items, on idle workers of the pool. Chunks depend on n and
  // grain only, never on the number of threads. Returns when all are done; the first exception is rethrown.
  template <class Fn> void parallel_for(int64_t n, int64_t grain, Fn&& fn) const {
    anabranch::parallel_for(parallel, n, grain, fn);
  }
  // fn(i) for each i of [0, n), likewise.
  template <class Fn> void parallel_each(int64_t n, int64_t grain, Fn&& fn) const {
    parallel_for(n, grain, [fn = std::forward<Fn>(fn)](int64_t begin, int64_t end) mutable {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  }
};

// For ops in a loop: mixes the iteration of this and of the outer loops into their random numbers.
class IterationContext : public KernelContext {
 public:
  IterationContext(const KernelContext& around, int64_t iteration)
      : KernelContext(around), iterations_(iterations_of(around)) {
    iterations_ += (static_cast<uint64_t>(iteration) + 1) * 0x9e3779b97f4a7c15u;
    iterations_ = (iterations_ ^ (iterations_ >> 30)) * 0xbf58476d1ce4e5b9u;
    in_iteration.set();
  }
  // As in the surrounding code.
  explicit IterationContext(const KernelContext& around) : KernelContext(around), iterations_(iterations_of(around)) {
    in_iteration.set();
  }
  IterationContext(const IterationContext& other) : IterationContext(static_cast<const KernelContext&>(other)) {}
  // 0 outside of loops.
  static uint64_t iterations_of(const KernelContext& c) {
    return c.in_iteration ? static_cast<const IterationContext&>(c).iterations_ : 0;
  }

 private:
  uint64_t iterations_;
};

// A sub-block ready to run, for the kernels of control flow. One run of it is an iteration; a conditional block has at
// most one. The variables of a block are in a frame. If the program has a gradient of the block, each iteration has a
// separate frame, which is kept for the gradient; otherwise there is one frame, and a variable of the block keeps the
// previous iteration's value.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  virtual void begin() = 0;  // of the op that runs the block: frames of earlier runs are free
  virtual void run(const KernelContext& caller) = 0;
  // A variable of the block itself, by number; -1 if it has none of that name. Its value is that of the last
  // iteration's frame.
  virtual int find(const std::string& name) = 0;
  virtual Value& value(int var) = 0;
  virtual void enter() = 0;  // from here to run(), value() returns those of the next iteration

  // Of a gradient block: selects iteration number `iteration` of the forward block, whose variables it then sees.
  virtual int iterations() = 0;  // number of iterations of the forward block
  virtual void run_back(const KernelContext& caller, int iteration) = 0;
  virtual bool keeps_array(int var) = 0;  // passed from iteration to iteration; false if the variable is not an array
  // A variable outside of the forward block, by number, with known shapes; -1: unknown. Zeros in its shape after an
  // iteration, or (-1) before the first.
  virtual int find_shaped(const std::string& name) = 0;
  virtual void make_zeros(int shaped, int iteration, Value& out) = 0;
};
using BlockFactory = std::function<std::shared_ptr<BlockRunner>(int block)>;

// The interface of factories.
class KernelArgs {
 public:
  KernelArgs(const OpDef& def, const ir::Op& op, DType dtype, const RandomKey& random,
             const BlockFactory* blocks = nullptr)
      : def_(def), op_(op), dtype_(dtype), random_(random), blocks_(blocks) {}

  // count 0 if the optional slot is absent; Internal if there is no such slot
  In in(std::string_view slot) const;
  Out out(std::string_view slot) const;      // as written in the op: kEmptyVar counts, see KernelContext::needs
  bool has_in(std::string_view slot) const;  // the op type has such a slot
  template <class T> const T& attr(std::string_view name) const { return op_.attr<T>(name); }
  const ir::Op& op() const { return op_; }
  DType dtype() const { return dtype_; }  // the dtype for which the kernel was chosen
  // Of this op in step 0: a user seed repeats, that of the program or the process does not.
  const RandomKey& random() const { return random_; }
  std::shared_ptr<BlockRunner> block(const std::string& attr) const;  // of a BLOCK attribute

 private:
  const OpDef& def_;
  const ir::Op& op_;
  DType dtype_;
  RandomKey random_;
  const BlockFactory* blocks_;
};

using KernelFactory = std::function<Kernel(const KernelArgs&)>;

}  // namespace anabranch
