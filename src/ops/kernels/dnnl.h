// What our kernels share of oneDNN: one CPU engine, one stream a thread, and a guard that keeps the library in the
// calling thread. Work is split over threads by us, by size, so that results do not depend on their number.
#pragma once
#include <dnnl.hpp>

#include <memory>

namespace anabranch {

const dnnl::engine& dnnl_engine();
dnnl::stream& dnnl_stream();  // of the calling thread

// While one lives, OpenMP regions entered by this thread run in this thread alone; what the user had set comes back.
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
