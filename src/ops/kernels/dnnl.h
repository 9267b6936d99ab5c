// Shared use of oneDNN: one CPU engine, one stream per thread, and a guard that keeps the library in the calling
// thread. Kernels split their work over threads themselves, by size, so results do not depend on the number of threads.
#pragma once
#include <dnnl.hpp>
#include <memory>
#include <span>

namespace anabranch {

const dnnl::engine& dnnl_engine();
dnnl::stream& dnnl_stream();  // of the calling thread

// Runs a primitive on the stream of the calling thread.
void execute(const dnnl::primitive& primitive, std::span<const dnnl_exec_arg_t> args);

// While one exists, OpenMP regions entered by this thread run only in this thread; the destructor restores the user's
// setting.
class DnnlSingleThread {
 public:
  DnnlSingleThread();
  ~DnnlSingleThread();
  DnnlSingleThread(const DnnlSingleThread&) = delete;
  DnnlSingleThread& operator=(const DnnlSingleThread&) = delete;

 private:
  int before_;
};

}  // namespace anabranch
