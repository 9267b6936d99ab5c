// A oneDNN matrix product for one shape. Not thread-safe itself: its slots are.
#pragma once
#include <vector>

#include "ops/kernels/dnnl.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/plain_product.h"

namespace anabranch {

// A oneDNN primitive for one shape, with memory handles and scratch space for each task that may run it concurrently.
class DnnlProduct {
 public:
  DnnlProduct(const GemmDims& d, float alpha, Operand operand) {
    using dnnl::memory;
    using Type = memory::data_type;
    const auto desc = [](int64_t rows, int64_t cols, bool transposed, int64_t ld, Type type) {
      return memory::desc({rows, cols}, type, transposed ? memory::dims{1, ld} : memory::dims{ld, 1});
    };
    const Type in = operand == Operand::kBfloat16 ? Type::bf16 : Type::f32;
    a_ = desc(d.m, d.k, d.trans_a, d.ld_a, in);
    b_ = desc(d.k, d.n, d.trans_b, d.ld_b, in);
    c_ = desc(d.m, d.n, false, d.ld_c, Type::f32);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (alpha != 1.0f) attr.set_output_scales(0, {alpha});
    const DnnlSingleThread alone;
    const dnnl::matmul::primitive_desc made({a_, b_, c_}, attr, dnnl_engine());
    scratch_ = made.scratchpad_desc();
    primitive_ = dnnl::matmul(made);
  }

  void reserve(size_t chunks) {
    while (slots_.size() < chunks) {
      const auto empty = [](const dnnl::memory::desc& d) { return dnnl::memory(d, dnnl_engine(), DNNL_MEMORY_NONE); };
      slots_.push_back({empty(a_), empty(b_), empty(c_), dnnl::memory(scratch_, dnnl_engine())});
    }
  }

  template <class In> void run(size_t chunk, const Operands<In, float>& p) {
    Slot& s = slots_[chunk];
    // The library takes inputs through pointers to mutable data, but does not write to them.
    s.a.set_data_handle(const_cast<In*>(p.a));
    s.b.set_data_handle(const_cast<In*>(p.b));
    s.c.set_data_handle(p.out);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s.a.get()},
                                    {DNNL_ARG_WEIGHTS, s.b.get()},
                                    {DNNL_ARG_DST, s.c.get()},
                                    {DNNL_ARG_SCRATCHPAD, s.scratch.get()}};
    const DnnlSingleThread alone;
    execute(primitive_, args);
  }

 private:
  struct Slot {
    dnnl::memory a, b, c, scratch;
  };
  dnnl::memory::desc a_, b_, c_, scratch_;
  dnnl::matmul primitive_;
  std::vector<Slot> slots_;
};

}  // namespace anabranch
