// Interface for splitting one loop over idle workers. The thread pool that runs it is base/thread_pool.h.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace anabranch {

class Parallel {
 public:
  using Body = void (*)(void* fn, int64_t begin, int64_t end);
  virtual ~Parallel() = default;
  // Calls body(fn, begin, end) for chunks of `chunk` items (the last may be shorter) until [0, n) is covered.
  virtual void run(int64_t n, int64_t chunk, Body body, void* fn) = 0;
};

// By the workers, or in this thread when parallel == nullptr. Out of line: a loop is compiled twice instead of three
// times.
void run_chunks(Parallel* parallel, int64_t n, int64_t chunk, Parallel::Body body, void* fn);

// Chunks depend on n and grain alone: at most 64, of at least `grain` items each, so that results do not depend on
// which threads run them. parallel == nullptr: this thread runs the same chunks in order.
template <class Fn> void parallel_for(Parallel* parallel, int64_t n, int64_t grain, Fn&& fn) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  int64_t chunk = (n + 63) / 64;
  if (chunk < grain) chunk = grain;
  if (chunk >= n) {
    fn(int64_t{0}, n);
    return;
  }
  run_chunks(
      parallel, n, chunk, [](void* f, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<Fn>*>(f))(b, e); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace anabranch
