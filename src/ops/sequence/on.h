// Where a recurrence runs: On is OnHost<T> or OnDevice<T>, and the kernel of an op is written once, as a template over
// it. Operands are Slabs on both sides.
//
//   const auto& c = On::of(context);                // the context that everything below takes
//   typename On::Room room(c, memory_);             // memory for one run; the kernel has one On::Memory
//   On::Rows, On::Blocks, On::Product, On::Cell<K>  // members of the kernel: each is used for one purpose
#pragma once
#include <deque>
#include <memory>

#include "ops/device/gemm_by_rows.h"
#include "ops/device/scratch.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/workspace.h"
#include "ops/sequence/blocks.h"
#include "ops/sequence/cell_loops.h"
#include "ops/sequence/cell_numbers.h"
#include "ops/sequence/rows_on_device.h"
#include "ops/sequence/rows_on_host.h"

namespace anabranch::sequence {

template <class T> class ProductOnHost {
 public:
  // out = a b, or adds to out.
  void run(const KernelContext& c, const GemmDims& d, Slab<const T> a, Slab<const T> b, Slab<T> out, bool add) {
    if (!add) return gemm_->run(c, d, a.at, b.at, out.at);
    GemmDims part = d;
    part.ld_c = 0;
    Workspace room;
    T* made = room.get<T>(d.m * d.n);
    gemm_->run(c, part, a.at, b.at, made);
    const int64_t ld = d.ld_c ? d.ld_c : d.n;
    each_row(c, d.m, d.n, [&](int64_t r) { add_to(made + r * d.n, d.n, out.at + r * ld); });
  }

 private:
  std::unique_ptr<Gemm<T>> gemm_ = std::make_unique<Gemm<T>>();
};

// out = a b + a row, which may be missing.
template <class T> class RowProductOnHost {
 public:
  void run(const KernelContext& c, const GemmDims& d, Slab<const T> a, Slab<const T> b, Slab<T> out,
           Slab<const T> row) {
    gemm_->run(c, d, a.at, b.at, out.at, {row.at, nullptr});
  }

 private:
  std::unique_ptr<Gemm<T>> gemm_ = std::make_unique<Gemm<T>>();
};
template <class T> class RowProductOnDevice {
 public:
  void run(const DeviceContext& c, const GemmDims& d, Slab<const T> a, Slab<const T> b, Slab<T> out,
           Slab<const T> row) {
    if (row) blocks_.move(c, d.m, d.n, row, 0, out, d.n, false);
    product_.run(c, d, a, b, out, static_cast<bool>(row));
  }

 private:
  BlocksOnDevice<T> blocks_;
  device::PartGemm<T> product_;
};

// A cell's kernel for the rows of a step.
template <class K, class T> struct CellOnHost {
  void run(const KernelContext& c, const typename K::Args& a) const {
    const EachUnit<K, T> each(a);
    const int64_t d = a.rule.units;
    each_row(c, a.rows, K::kGates * d, [&](int64_t r) {
      if constexpr (std::is_same_v<T, float>) {
        loops::run_units<K>(a.rule, each.first, UnitPlace(r, 0, d, K::kGates, K::distance(a)), d, nullptr);
      } else {
        for (int64_t i = r * d; i < (r + 1) * d; ++i) each(i);
      }
    });
  }
};

template <class T> struct OnHost {
  using Number = T;
  using Context = KernelContext;
  using Rows = RowsOnHost<T>;
  using Blocks = BlocksOnHost<T>;
  using Product = ProductOnHost<T>;
  using RowProduct = RowProductOnHost<T>;
  using ProductByRows = ProductOnHost<T>;
  template <class K> using Cell = CellOnHost<K, T>;
  struct Memory {};
  class Room {
   public:
    Room(const KernelContext&, Memory&) {}
    Slab<T> rows(int64_t n, int64_t width) { return {work_.get<T>(n * width), n * width}; }
    Slab<T> zeros(int64_t n, int64_t width) {
      const Slab<T> made = rows(n, width);
      fill_zero(made);
      return made;
    }

   private:
    Workspace work_;
  };
  static const KernelContext& of(const KernelContext& c) { return c; }
  static void zero(const KernelContext&, Slab<T> to) { fill_zero(to); }

 private:
  static void fill_zero(Slab<T> to) { std::fill_n(to.at, to.count, T{0}); }
};

// One product or cell kernel per step: a plan is kept for each number of rows.
template <class T> struct OnDevice {
  using Number = T;
  using Context = DeviceContext;
  using Rows = RowsOnDevice<T>;
  using Blocks = BlocksOnDevice<T>;
  using Product = device::PartGemm<T>;
  using RowProduct = RowProductOnDevice<T>;
  using ProductByRows = device::GemmByRows<T>;
  template <class K> struct Cell {
    void run(const DeviceContext& c, const typename K::Args& a) const { c.launch(kernel, a); }
    ab_kernel kernel = device::kernel_of<T>(K::kName);
  };
  // Kept from run to run: requests come in the same order.
  struct Memory {
    std::deque<device::Scratch> held;
    size_t used = 0;
  };
  class Room {
   public:
    Room(const DeviceContext& c, Memory& memory) : c_(c), memory_(memory) { memory.used = 0; }
    Slab<T> rows(int64_t n, int64_t width) {
      if (memory_.used == memory_.held.size()) memory_.held.emplace_back();
      return slab<T>(memory_.held[memory_.used++].of(c_, Shape{n, width}, dtype_of<T>));
    }
    Slab<T> zeros(int64_t n, int64_t width) {
      const Slab<T> made = rows(n, width);
      fill_zero(c_, made);
      return made;
    }

   private:
    const DeviceContext& c_;
    Memory& memory_;
  };
  static const DeviceContext& of(const KernelContext& c) { return DeviceContext::of(c); }
  static void zero(const DeviceContext& c, Slab<T> to) { fill_zero(c, to); }
};

// Whether the steps of a recurrence are loops over panels of packed weights (panels.h).
template <class On> inline constexpr bool kHasPanels = std::is_same_v<On, OnHost<float>>;

// One row per sequence, in the order of step 0, of an optional state; missing if it is not given.
template <class On>
Slab<const typename On::Number> first_rows(const typename On::Context& c, typename On::Rows& rows, In state,
                                           int64_t width, typename On::Room& room) {
  if (!state) return {};
  const auto to = room.rows(rows.order().widest(), width);
  rows.gather_first(c, slab<typename On::Number>(c, state), width, to);
  return to;
}

// Declares a kernel that is a template over On, for float32 and float64 on the host and on devices. Its name is unique
// in its namespace: GCC gives templates of unnamed namespaces external linkage as arguments.
template <template <class> class K> void run_on_both(OpDef& def) {
  def.cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return K<OnHost<T>>(op); });
  def.device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return K<OnDevice<T>>(op); });
}

// The same for float32 alone.
template <template <class> class K> void run_float_on_both(OpDef& def) {
  def.cpu<float>([](auto, const KernelArgs& op) -> Kernel { return K<OnHost<float>>(op); });
  def.device<float>([](auto, const KernelArgs& op) -> Kernel { return K<OnDevice<float>>(op); });
}

}  // namespace anabranch::sequence
