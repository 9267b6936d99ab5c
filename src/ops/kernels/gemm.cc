#include "ops/kernels/gemm.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ops/kernels/bfloat16.h"
#include "ops/kernels/dnnl_product.h"
#include "ops/kernels/gemm_cut.h"
#include "ops/kernels/plain_product.h"
#include "ops/kernels/row_product.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/tile_product.h"

namespace anabranch {
namespace {

constexpr size_t kMaxShapesKept = 64;

GemmDims with_strides(GemmDims d) {
  if (d.ld_a == 0) d.ld_a = d.trans_a ? d.m : d.k;
  if (d.ld_b == 0) d.ld_b = d.trans_b ? d.k : d.n;
  if (d.ld_c == 0) d.ld_c = d.n;
  return d;
}

// Number of elements from the first to the last of `batch` stored matrices.
int64_t extent(int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride) {
  return (batch - 1) * stride + (rows - 1) * ld + cols;
}

void row_product(const GemmDims& d, float alpha, const Operands<float, float>& p) {
  simd::row_product(p.a, d.trans_a ? d.ld_a : 1, p.b, d.ld_b, d.k, d.n, p.out);
  if (alpha == 1.0f) return;
  for (int64_t j = 0; j < d.n; ++j) p.out[j] *= alpha;
}

// Up to here a call of the library costs more than the product; with fewer rows, copying B costs more.
bool fits_tiles(const GemmDims& d) {
  constexpr int64_t kMostWork = 3 << 14;
  return d.m >= 4 && d.n >= 4 && d.k > 0 && d.k <= simd::TileProduct::kMostDepth && d.m * d.n * d.k <= kMostWork;
}

void tile_product(const GemmDims& d, float alpha, const Operands<float, float>& p) {
  simd::tile_product({.m = d.m,
                      .n = d.n,
                      .k = d.k,
                      .alpha = alpha,
                      .a = p.a,
                      .a_row = d.trans_a ? 1 : d.ld_a,
                      .a_col = d.trans_a ? d.ld_a : 1,
                      .b = p.b,
                      .ld_b = d.ld_b,
                      .trans_b = d.trans_b,
                      .out = p.out,
                      .ld_c = d.ld_c});
}

// For one chunk of C, whose first column is `column` of the whole.
void finish(const GemmEpilogue& e, const GemmDims& d, int64_t column, float* out) {
  if (e.row) simd::add_to_rows(out, d.ld_c, e.row + column, d.m, d.n);
  if (!e.act) return;
  if (d.ld_c == d.n) return e.act(out, out, d.m * d.n);
  for (int64_t i = 0; i < d.m; ++i) e.act(out + i * d.ld_c, out + i * d.ld_c, d.n);
}

// The implementation that computes a product: plain loops, the library, or the loops for one row and for small
// matrices.
enum class Way { kPlain, kLibrary, kRow, kTiles };

// library: the product is large enough for a call of it.
template <class T> Way way_of(const GemmDims& d, bool library) {
  if (!library) return Way::kPlain;
  if (is_row_product(d)) return Way::kRow;
  return std::is_same_v<T, float> && d.batch > 1 && fits_tiles(d) ? Way::kTiles : Way::kLibrary;
}

struct DimsLess {
  static auto key(const GemmDims& d) { return std::tie(d.m, d.n, d.k, d.trans_a, d.trans_b, d.ld_a, d.ld_b, d.ld_c); }
  bool operator()(const GemmDims& x, const GemmDims& y) const { return key(x) < key(y); }
};

}  // namespace

template <class T> struct Gemm<T>::Impl {
  Impl(double factor, Operand o) : alpha(static_cast<T>(factor)), operand(o) {}

  // The chunks of one run have two shapes: the full one and the shorter last one.
  void prepare(const GemmDims& d, const Cut& cut, int64_t tasks) {
    if (prepared == d) return;
    if (products.size() >= kMaxShapesKept) products.clear();
    full = product(chunk_dims(cut, 0, d), tasks);
    last = product(chunk_dims(cut, cut.count - 1, d), tasks);
    prepared = d;
  }

  DnnlProduct* product(const GemmDims& d, int64_t tasks) {
    auto& made = products[d];
    if (!made) made = std::make_unique<DnnlProduct>(d, static_cast<float>(alpha), operand);
    made->reserve(static_cast<size_t>(tasks));
    return made.get();
  }

  template <class In> void run_chunk(const GemmDims& d, const Operands<In, T>& p, Way way, bool is_last, int64_t task) {
    if constexpr (std::is_same_v<T, float>) {
      if (way == Way::kLibrary) return (is_last ? last : full)->run(static_cast<size_t>(task), p);
    }
    if constexpr (std::is_same_v<In, float>) {
      if (way == Way::kRow) return row_product(d, alpha, p);
      if (way == Way::kTiles) return tile_product(d, alpha, p);
    }
    if constexpr (std::is_same_v<In, T>) plain_product<T>(d, alpha, p);
  }

  template <class In>
  void run(const KernelContext& c, const GemmDims& d, const Operands<In, T>& all, Way way,
           const GemmEpilogue& epilogue) {
    const Cut cut(d, way != Way::kPlain && sums_in_chunks(d));
    if (cut.along == Cut::kDepth) {
      if constexpr (std::is_same_v<T, float>) return run_depth(c, d, cut, all, way, epilogue);
    }
    // A task is a run of chunks, long enough to be worth another worker if the matrices of a batch are small.
    const int64_t chunks = d.batch * cut.count;
    const double chunk_work = std::max(work_of(d), static_cast<double>(d.m * d.n)) / static_cast<double>(cut.count);
    const int64_t per_task = std::max((chunks + 63) / 64, static_cast<int64_t>(Cut::kWorthTwo / 2 / chunk_work) + 1);
    const int64_t tasks = (chunks + per_task - 1) / per_task;
    if (way == Way::kLibrary) prepare(d, cut, tasks);
    c.parallel_each(tasks, 1, [&](int64_t task) {
      for (int64_t i = task * per_task; i < std::min(chunks, (task + 1) * per_task); ++i) {
        const int64_t matrix = i / cut.count, chunk = i % cut.count;
        const Operands<In, T> whole = {all.a + matrix * d.batch_stride_a, all.b + matrix * d.batch_stride_b,
                                       all.out + matrix * d.batch_stride_c};
        const GemmDims part = chunk_dims(cut, chunk, d);
        const Operands<In, T> at = chunk_operands(cut, chunk, d, whole);
        run_chunk(part, at, way, chunk + 1 == cut.count, task);
        if constexpr (std::is_same_v<T, float>) {
          finish(epilogue, part, cut.along == Cut::kRows ? 0 : chunk * cut.step, at.out);
        }
      }
    });
  }

  // Each chunk computes a partial matrix; these are added up in order.
  template <class In>
  void run_depth(const KernelContext& c, GemmDims d, const Cut& cut, const Operands<In, T>& all, Way way,
                 const GemmEpilogue& epilogue) {
    const int64_t ld = d.ld_c, size = d.m * d.n;
    d.ld_c = d.n;
    if (way == Way::kLibrary) prepare(d, cut, cut.count);
    sums.resize(static_cast<size_t>(cut.count * size));
    c.parallel_each(cut.count, 1, [&](int64_t i) {
      Operands<In, T> at = chunk_operands(cut, i, d, all);
      at.out = sums.data() + i * size;
      run_chunk(chunk_dims(cut, i, d), at, way, i + 1 == cut.count, i);
    });
    c.parallel_for(d.m, 16384 / d.n + 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        T* to = all.out + r * ld;
        std::copy_n(sums.data() + r * d.n, d.n, to);
        for (int64_t i = 1; i < cut.count; ++i) simd::add(to, sums.data() + i * size + r * d.n, to, d.n);
      }
      GemmDims rows = d;
      rows.m = end - begin;
      rows.ld_c = ld;
      finish(epilogue, rows, 0, all.out + begin * ld);
    });
  }

  T alpha;
  Operand operand;
  std::vector<T> sums;             // of the chunks of one product
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
      return impl_->run(c, d, all, Way::kLibrary, epilogue);
    }
  }
  GemmDims plain = d;
  Operands<T, T> all = {a, b, out};
  if (!library && !epilogue.row) lengthen_loops(&plain, &all);
  impl_->run(c, plain, all, way_of<T>(d, library), epilogue);
}

template class Gemm<float>;
template class Gemm<double>;

struct TaskGemm::Impl {
  float alpha;
  GemmDims dims;
  bool library = false, tiles = false;
  std::map<GemmDims, std::unique_ptr<DnnlProduct>, DimsLess> products;
  DnnlProduct* product = nullptr;
};

TaskGemm::TaskGemm(double alpha) : impl_(std::make_unique<Impl>()) { impl_->alpha = static_cast<float>(alpha); }
TaskGemm::~TaskGemm() = default;

void TaskGemm::prepare(const GemmDims& dims, int64_t tasks) {
  Impl& i = *impl_;
  const GemmDims d = with_strides(dims);
  if (!(i.dims == d)) {
    i.dims = d;
    i.tiles = fits_tiles(d);
    i.library = !i.tiles && d.k > 0 && d.m * d.n > kSmallWork / d.k;
    if (i.products.size() >= kMaxShapesKept) i.products.clear();
    if (i.library) {
      auto& made = i.products[d];
      if (!made) made = std::make_unique<DnnlProduct>(d, i.alpha, Operand::kFull);
      i.product = made.get();
    }
  }
  if (i.library) i.product->reserve(static_cast<size_t>(tasks));
}

void TaskGemm::run(int64_t task, const float* a, const float* b, float* out) const {
  const Impl& i = *impl_;
  if (i.library) return i.product->run(static_cast<size_t>(task), Operands<float, float>{a, b, out});
  if (i.tiles) return tile_product(i.dims, i.alpha, {a, b, out});
  plain_product<float>(i.dims, i.alpha, Operands<float, float>{a, b, out});
}

}  // namespace anabranch
