// Memory that a kernel needs only while it runs. Memory that each kernel keeps would add up over the ops of a program
// and over programs; this comes from a few stores of the process, as many as kernels run at the same time, which only
// grow. Once they are large enough, nothing is allocated, and no lock is taken.
//
//   Workspace room;                                // in the kernel
//   float* rows = room.get<float>(n * width);      // valid while room exists; uninitialized
#pragma once
#include <cstddef>
#include <cstdint>

namespace anabranch {

class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // n elements, aligned to a cache line.
  template <class T> T* get(int64_t n) { return static_cast<T*>(take(static_cast<size_t>(n) * sizeof(T))); }

 private:
  struct Store;
  static Store* stores();
  void* take(size_t bytes);

  Store* store_;
};

}  // namespace anabranch
