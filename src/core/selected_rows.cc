#include "core/selected_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "core/row_blocks.h"

namespace anabranch {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kWorthDigits = 512;  // ids; fewer are sorted by comparing

// Stable radix sort of numbers whose lowest `index_bits` are carried along.
void sort_by_digits(std::vector<uint64_t>* numbers, std::vector<uint64_t>* scratch, int index_bits, int bits) {
  scratch->resize(numbers->size());
  for (int shift = index_bits; shift < bits; shift += kDigitBits) {
    std::array<size_t, (1 << kDigitBits) + 1> starts{};
    const auto digit = [shift](uint64_t v) { return (v >> shift) & ((1u << kDigitBits) - 1); };
    for (const uint64_t v : *numbers) ++starts[digit(v) + 1];
    for (size_t d = 1; d < starts.size(); ++d) starts[d] += starts[d - 1];
    for (const uint64_t v : *numbers) (*scratch)[starts[digit(v)]++] = v;
    numbers->swap(*scratch);
  }
}

// Positions of the ids, ascending by id, equal ids in their original order.
void order_by_id(const std::vector<int64_t>& ids, std::vector<int64_t>* order) {
  const size_t n = ids.size();
  order->resize(n);
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  const int index_bits = std::bit_width(n);
  const int bits =
      n < kWorthDigits ? 65 : index_bits + std::bit_width(static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least));
  if (bits > 64) {
    std::iota(order->begin(), order->end(), 0);
    std::sort(order->begin(), order->end(),
              [&](int64_t a, int64_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
    return;
  }
  thread_local std::vector<uint64_t> numbers, scratch;  // kept: a steady step allocates nothing
  numbers.resize(n);
  for (size_t i = 0; i < n; ++i)
    numbers[i] = (static_cast<uint64_t>(ids[i]) - static_cast<uint64_t>(*least)) << index_bits | i;
  sort_by_digits(&numbers, &scratch, index_bits, bits);
  const uint64_t index = (uint64_t{1} << index_bits) - 1;
  for (size_t i = 0; i < n; ++i) (*order)[i] = static_cast<int64_t>(numbers[i] & index);
}

// Adds n rows to `sum`, one after the other; four at a time, so that it is read and written less often.
template <class T> void add_rows(const T* rows, const int64_t* places, size_t n, int64_t width, T* sum) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T *a = rows + places[i] * width, *b = rows + places[i + 1] * width, *c = rows + places[i + 2] * width,
            *d = rows + places[i + 3] * width;
    for (int64_t j = 0; j < width; ++j) {
      const T two = static_cast<T>(static_cast<T>(sum[j] + a[j]) + b[j]);
      sum[j] = static_cast<T>(static_cast<T>(two + c[j]) + d[j]);
    }
  }
  for (; i < n; ++i) {
    const T* row = rows + places[i] * width;
    for (int64_t j = 0; j < width; ++j) sum[j] = static_cast<T>(sum[j] + row[j]);
  }
}

}  // namespace

void check_rows(const SelectedRows& rows) {
  const Shape& values = rows.value.shape();
  AB_CHECK(rows.height >= kUnknown, InvalidArgument,
           "sparse rows must have a height of at least 0, or -1 where it is not known, got {}", rows.height);
  if (in_block(rows)) {
    AB_CHECK(rows.rows.empty() && values.rank() > 0, Internal, "sparse rows in a block {} have separate ids",
             values.str());
    return;
  }
  AB_CHECK(!rows.value.initialized() ? rows.rows.empty()
                                     : values.rank() > 0 && values[0] == static_cast<int64_t>(rows.rows.size()),
           ShapeMismatch, "sparse rows must have a row of values for each of the {} ids, got values of shape {}",
           rows.rows.size(), values.str());
}

void merge_rows(const SelectedRows& in, SelectedRows* out) {
  AB_CHECK(&in != out, Internal, "merge_rows in place");
  check_rows(in);
  const size_t n = in.rows.size();
  // The output's ids hold the order of the input's rows until ids replace them. Equal ids keep their order, so the sum
  // of an id always has the same order.
  std::vector<int64_t>& order = out->rows;
  order_by_id(in.rows, &order);
  size_t distinct = 0;
  for (size_t k = 0; k < n; ++k) distinct += k == 0 || in.rows[order[k]] != in.rows[order[k - 1]];
  out->height = in.height;
  Shape shape = in.value.shape();
  shape.set(0, static_cast<int64_t>(distinct));
  out->value.resize(shape, in.value.dtype());
  const int64_t width = in.value.row_elems();
  visit_dtype(in.value.dtype(), [&]<class T>(TypeTag<T>) {
    const T* src = in.value.data<T>();
    T* dst = out->value.mutable_data<T>();
    size_t made = 0;
    for (size_t k = 0, end = 0; k < n; k = end, dst += width) {
      const int64_t id = in.rows[order[k]];
      while (end < n && in.rows[order[end]] == id) ++end;
      std::copy_n(src + order[k] * width, width, dst);
      add_rows(src, order.data() + k + 1, end - k - 1, width, dst);
      order[made++] = id;
    }
  });
  out->rows.resize(distinct);
}

}  // namespace anabranch
