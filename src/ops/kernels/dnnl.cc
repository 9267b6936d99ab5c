#include "ops/kernels/dnnl.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/thread_pool.h"

namespace anabranch {
namespace {

// The OpenMP runtime of oneDNN, looked up by name: its identity depends on the library's package.
struct OpenMp {
  int (*get_max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
  OpenMp() {
    get_max_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  }
};

const OpenMp& openmp() {
  static const OpenMp found;
  return found;
}

// The thread pool splits the work, so oneDNN must not start threads in its workers.
void prepare_worker() {
  dnnl_stream();
  if (openmp().set_num_threads) openmp().set_num_threads(1);
}

[[maybe_unused]] const bool registered = (ThreadPool::at_thread_start(prepare_worker), true);

}  // namespace

const dnnl::engine& dnnl_engine() {
  // Never destroyed: threads of the pool may outlive the statics of this file.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& dnnl_stream() {
  thread_local dnnl::stream stream(dnnl_engine());
  return stream;
}

void execute(const dnnl::primitive& primitive, std::span<const dnnl_exec_arg_t> args) {
  const auto count = static_cast<int>(args.size());
  const dnnl_status_t status = dnnl_primitive_execute(primitive.get(), dnnl_stream().get(), count, args.data());
  AB_CHECK(status == dnnl_success, Internal, "oneDNN failed with status {}", static_cast<int>(status));
}

DnnlSingleThread::DnnlSingleThread() : before_(1) {
  if (!openmp().set_num_threads) return;
  before_ = openmp().get_max_threads();
  if (before_ != 1) openmp().set_num_threads(1);
}

DnnlSingleThread::~DnnlSingleThread() {
  if (before_ != 1) openmp().set_num_threads(before_);
}

}  // namespace anabranch
