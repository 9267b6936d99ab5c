#include "ops/kernels/gemm.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ops/kernels/bfloat16.h"
#include "ops/kernels/dnnl.h"
#include "ops/kernels/plain_product.h"
#include "ops/kernels/simd.h"

namespace anabranch {
namespace {

// In multiply-adds.
constexpr int64_t kSmallWork = 4096;    // below this a library call costs more than the product
constexpr double kPieceWork = 1 << 21;  // large pieces: each packs the operand that it shares
constexpr double kWorthTwo = 1 << 19;   // from here on two workers are faster than one: about 5 us
constexpr double kPieceLength = 64;     // rows or columns: shorter ones spend too much on packing the other operand
constexpr double kMaxPieces = 16;
constexpr size_t kMaxShapesKept = 64;

GemmDims with_strides(GemmDims d) {
  if (d.ld_a == 0) d.ld_a = d.trans_a ? d.m : d.k;
  if (d.ld_b == 0) d.ld_b = d.trans_b ? d.k : d.n;
  if (d.ld_c == 0) d.ld_c = d.n;
  return d;
}

// One matrix product cut along its longer side into pieces of `step` rows or columns.
struct Cut {
  bool by_rows;
  int64_t step, count;
  explicit Cut(const GemmDims& d) : by_rows(d.m >= d.n) {
    const int64_t length = by_rows ? d.m : d.n;
    const double work = static_cast<double>(d.m) * static_cast<double>(d.n) * static_cast<double>(d.k);
    const double most = std::clamp(static_cast<double>(length) / kPieceLength, 2.0, kMaxPieces);
    const auto wanted = static_cast<int64_t>(std::clamp(work / kPieceWork, work < kWorthTwo ? 1.0 : 2.0, most));
    step = ((length + wanted - 1) / wanted + 15) / 16 * 16;  // whole blocks of the library's inner kernels
    count = (length + step - 1) / step;
  }
};

// Elements from the first to the last of `batch` stored matrices.
int64_t extent(int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride) {
  return (batch - 1) * stride + (rows - 1) * ld + cols;
}

GemmDims piece_dims(const Cut& cut, int64_t i, GemmDims d) {
  int64_t& length = cut.by_rows ? d.m : d.n;
  length = std::min(cut.step, length - i * cut.step);
  return d;
}

template <class In, class T>
Operands<In, T> piece_operands(const Cut& cut, int64_t i, const GemmDims& d, const Operands<In, T>& p) {
  const int64_t from = i * cut.step;
  if (cut.by_rows) return {p.a + from * (d.trans_a ? 1 : d.ld_a), p.b, p.out + from * d.ld_c};
  return {p.a, p.b + from * (d.trans_b ? d.ld_b : 1), p.out + from};
}

// Of one piece of C, whose first column is `column` of the whole.
void finish(const GemmEpilogue& e, const GemmDims& d, int64_t column, float* out) {
  if (e.row) simd::add_to_rows(out, d.ld_c, e.row + column, d.m, d.n);
  if (!e.act) return;
  if (d.ld_c == d.n) return e.act(out, out, d.m * d.n);
  for (int64_t i = 0; i < d.m; ++i) e.act(out + i * d.ld_c, out + i * d.ld_c, d.n);
}

// A oneDNN primitive for one shape, with a set of memory handles and scratch space for each piece that may run it at
// the same time as others.
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

  void reserve(size_t pieces) {
    while (slots_.size() < pieces) {
      const auto empty = [](const dnnl::memory::desc& d) { return dnnl::memory(d, dnnl_engine(), DNNL_MEMORY_NONE); };
      slots_.push_back({empty(a_), empty(b_), empty(c_), dnnl::memory(scratch_, dnnl_engine())});
    }
  }

  template <class In> void run(size_t piece, const Operands<In, float>& p) {
    Slot& s = slots_[piece];
    // The library takes inputs by pointers to mutable data; it does not write them.
    s.a.set_data_handle(const_cast<In*>(p.a));
    s.b.set_data_handle(const_cast<In*>(p.b));
    s.c.set_data_handle(p.out);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s.a.get()},
                                    {DNNL_ARG_WEIGHTS, s.b.get()},
                                    {DNNL_ARG_DST, s.c.get()},
                                    {DNNL_ARG_SCRATCHPAD, s.scratch.get()}};
    const DnnlSingleThread alone;
    const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), dnnl_stream().get(), 4, args);
    AB_CHECK(status == dnnl_success, Internal, "oneDNN matmul failed with status {}", static_cast<int>(status));
  }

 private:
  struct Slot {
    dnnl::memory a, b, c, scratch;
  };
  dnnl::memory::desc a_, b_, c_, scratch_;
  dnnl::matmul primitive_;
  std::vector<Slot> slots_;
};

struct DimsLess {
  static auto key(const GemmDims& d) { return std::tie(d.m, d.n, d.k, d.trans_a, d.trans_b, d.ld_a, d.ld_b, d.ld_c); }
  bool operator()(const GemmDims& x, const GemmDims& y) const { return key(x) < key(y); }
};

}  // namespace

template <class T> struct Gemm<T>::Impl {
  Impl(double factor, Operand o) : alpha(static_cast<T>(factor)), operand(o) {}

  // Pieces of one run come in two shapes: the full one and the shorter last one.
  void prepare(const GemmDims& d, const Cut& cut, int64_t tasks) {
    if (prepared == d) return;
    if (products.size() >= kMaxShapesKept) products.clear();
    full = product(piece_dims(cut, 0, d), tasks);
    last = product(piece_dims(cut, cut.count - 1, d), tasks);
    prepared = d;
  }

  DnnlProduct* product(const GemmDims& d, int64_t tasks) {
    auto& made = products[d];
    if (!made) made = std::make_unique<DnnlProduct>(d, static_cast<float>(alpha), operand);
    made->reserve(static_cast<size_t>(tasks));
    return made.get();
  }

  template <class In>
  void run_piece(const GemmDims& d, const Operands<In, T>& p, bool library, bool is_last, int64_t task) {
    if constexpr (std::is_same_v<T, float>) {
      if (library) return (is_last ? last : full)->run(static_cast<size_t>(task), p);
    }
    if constexpr (std::is_same_v<In, T>) plain_product<T>(d, alpha, p);
  }

  template <class In>
  void run(const KernelContext& c, const GemmDims& d, const Operands<In, T>& all, bool library,
           const GemmEpilogue& epilogue) {
    const Cut cut(d);
    // A task is a run of pieces, long enough to be worth its hand-off when the matrices of a batch are small.
    const int64_t pieces = d.batch * cut.count;
    const double piece_work = static_cast<double>(d.m * d.n) * static_cast<double>(std::max<int64_t>(d.k, 1)) /
                              static_cast<double>(cut.count);
    const int64_t per_task = std::max((pieces + 63) / 64, static_cast<int64_t>(kWorthTwo / 2 / piece_work) + 1);
    const int64_t tasks = (pieces + per_task - 1) / per_task;
    if (library) prepare(d, cut, tasks);
    c.parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        for (int64_t i = task * per_task; i < std::min(pieces, (task + 1) * per_task); ++i) {
          const int64_t matrix = i / cut.count, piece = i % cut.count;
          const Operands<In, T> whole = {all.a + matrix * d.batch_stride_a, all.b + matrix * d.batch_stride_b,
                                         all.out + matrix * d.batch_stride_c};
          const GemmDims part = piece_dims(cut, piece, d);
          const Operands<In, T> at = piece_operands(cut, piece, d, whole);
          run_piece(part, at, library, piece + 1 == cut.count, task);
          if constexpr (std::is_same_v<T, float>) finish(epilogue, part, cut.by_rows ? 0 : piece * cut.step, at.out);
        }
      }
    });
  }

  T alpha;
  Operand operand;
  std::vector<uint16_t> a16, b16;  // operands in bfloat16
  GemmDims prepared;
  DnnlProduct *full = nullptr, *last = nullptr;
  std::map<GemmDims, std::unique_ptr<DnnlProduct>, DimsLess> products;
};

template <class T> Gemm<T>::Gemm(double alpha, Operand operand) : impl_(std::make_unique<Impl>(alpha, operand)) {}
template <class T> Gemm<T>::~Gemm() = default;

template <class T>
void Gemm<T>::run(const KernelContext& c, const GemmDims& dims, const T* a, const T* b, T* out,
                  const GemmEpilogue& epilogue) {
  if (dims.m == 0 || dims.n == 0 || dims.batch == 0) return;
  const GemmDims d = with_strides(dims);
  const bool library = std::is_same_v<T, float> && d.k > 0 && d.m * d.n > kSmallWork / d.k;
  if constexpr (std::is_same_v<T, float>) {
    if (library && impl_->operand == Operand::kBfloat16) {
      round_to_bfloat16(c, a, extent(d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k, d.ld_a, d.batch, d.batch_stride_a),
                        impl_->a16);
      round_to_bfloat16(c, b, extent(d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, d.ld_b, d.batch, d.batch_stride_b),
                        impl_->b16);
      const Operands<uint16_t, T> all = {impl_->a16.data(), impl_->b16.data(), out};
      return impl_->run(c, d, all, library, epilogue);
    }
  }
  GemmDims plain = d;
  Operands<T, T> all = {a, b, out};
  if (!library && !epilogue.row) lengthen_loops(&plain, &all);
  impl_->run(c, plain, all, library, epilogue);
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace anabranch
