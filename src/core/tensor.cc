#include "core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/flags.h"
#include "device/pool.h"

namespace anabranch {
namespace {

constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register
// Without huge pages random rows of big tables cost a TLB miss each, and copies between many tensors take 1.5 times as
// long.
constexpr size_t kHugePage = size_t{2} << 20;

std::atomic<int64_t> resident_bytes{0};

bool fits(size_t bytes, int64_t limit_mb) {
  if (limit_mb <= 0) return true;
  const auto limit = static_cast<size_t>(std::min(limit_mb, INT64_MAX >> 20)) << 20;
  const auto taken = static_cast<size_t>(std::max<int64_t>(resident_buffer_bytes(), 0));
  return taken <= limit && bytes <= limit - taken;
}

// Of smaller buffers only those whose last page is nearly full.
bool in_huge_pages(size_t bytes) {
  const size_t unused = (kHugePage - bytes % kHugePage) % kHugePage;
  return bytes >= 2 * kHugePage || (bytes > 0 && unused <= bytes / 8);
}

}  // namespace

std::shared_ptr<void> allocate_buffer(size_t bytes, Place place) {
  if (place.kind != PlaceKind::kCpu) return device::allocate(place, bytes);
  const size_t alignment = in_huge_pages(bytes) ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  const int64_t limit = Flags::memory_limit_mb();
  AB_CHECK(fits(rounded, limit), ResourceExhausted,
           "FLAGS_memory_limit_mb is {}: there is no room for {} more bytes; {} are in use", limit, bytes,
           resident_buffer_bytes());
  void* p = std::aligned_alloc(alignment, rounded);
  AB_CHECK(p != nullptr, ResourceExhausted, "cannot allocate {} bytes", bytes);
  if (alignment == kHugePage) madvise(p, rounded, MADV_HUGEPAGE);
  resident_bytes.fetch_add(static_cast<int64_t>(rounded), std::memory_order_relaxed);
  return {p, [rounded](void* q) {
            resident_bytes.fetch_sub(static_cast<int64_t>(rounded), std::memory_order_relaxed);
            std::free(q);
          }};
}

int64_t resident_buffer_bytes() { return resident_bytes.load(std::memory_order_relaxed); }

void Tensor::swap(Tensor& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(numel_, other.numel_);
  std::swap(row_stride_, other.row_stride_);
  std::swap(capacity_bytes_, other.capacity_bytes_);
  std::swap(shape_, other.shape_);
  std::swap(kind_, other.kind_);
  std::swap(owner_, other.owner_);
  std::swap(lod_, other.lod_);
}

void Tensor::resize(const Shape& shape, Kind kind) {
  if (data_ && shape == shape_ && kind == kind_) return;  // a view stays a view: its memory belongs to another record
  const int64_t numel = shape.numel();
  AB_CHECK(numel >= 0, Internal, "resize to unknown shape {}", shape.str());
  const size_t bytes = static_cast<size_t>(numel) * dtype_size(kind.dtype);
  if (!data_ || bytes > capacity_bytes_ || !(kind.place == kind_.place)) {
    const size_t needed = bytes ? bytes : 1;  // an empty tensor is initialized too
    owner_ = allocate_buffer(needed, kind.place);
    data_ = owner_.get();
    capacity_bytes_ = needed;
  }
  shape_ = shape;
  kind_ = kind;
  numel_ = numel;
  row_stride_ = row_elems();
}

void Tensor::view(void* data, const Shape& shape, Kind kind, std::shared_ptr<void> owner, int64_t row_stride) {
  data_ = data;
  owner_ = std::move(owner);
  capacity_bytes_ = 0;
  shape_ = shape;
  kind_ = kind;
  numel_ = shape.numel();
  row_stride_ = row_stride ? row_stride : row_elems();
}

Tensor Tensor::reshaped(const Shape& shape) const {
  AB_CHECK(shape.numel() == numel_, ShapeMismatch, "cannot view {} as {}", shape_.str(), shape.str());
  AB_CHECK(contiguous(), Internal, "a strided view cannot be reshaped");
  Tensor t = *this;
  t.shape_ = shape;
  t.row_stride_ = t.row_elems();
  t.lod_ = nullptr;
  return t;
}

Tensor Tensor::row_range(int64_t begin, int64_t end) const {
  AB_CHECK(shape_.rank() > 0 && begin >= 0 && begin <= end && end <= shape_[0], InvalidArgument,
           "rows [{}, {}) are outside {}", begin, end, shape_.str());
  Tensor t = *this;
  t.shape_.set(0, end - begin);
  t.numel_ = (end - begin) * row_elems();
  t.data_ = static_cast<char*>(data_) + static_cast<size_t>(begin * row_stride_) * dtype_size(kind_.dtype);
  t.capacity_bytes_ = 0;
  t.lod_ = nullptr;
  return t;
}

void Tensor::place(void* data, size_t capacity_bytes, std::shared_ptr<void> owner) {
  AB_CHECK(bytes() <= capacity_bytes, Internal, "{} bytes do not fit into {}", bytes(), capacity_bytes);
  data_ = data;
  owner_ = std::move(owner);
  capacity_bytes_ = capacity_bytes;
}

void Tensor::release() {
  data_ = nullptr;
  owner_ = nullptr;
  capacity_bytes_ = 0;
}

void Tensor::copy_from(const Tensor& other, Place to) {
  AB_CHECK(other.initialized(), NotFound, "the tensor to copy was never written");
  if (this == &other) return;
  const Kind kind(other.dtype(), to);
  const bool fits = data_ && shape_ == other.shape_ && kind_ == kind;
  if (!capacity_bytes_ && data_ && !fits) release();
  if (!fits) resize(other.shape_, kind);
  if (!to.on_host() || !other.place().on_host()) {
    AB_CHECK(contiguous() && other.contiguous(), Internal, "a strided view cannot be copied to or from {}", to.str());
    device::copy_bytes(data_, to, other.data_, other.place(), bytes());
  } else if (contiguous() && other.contiguous()) {
    std::memcpy(data_, other.data_, bytes());
  } else {
    copy_rows(other);
  }
  lod_ = other.lod_;
}

void Tensor::copy_rows(const Tensor& other) {
  const size_t size = dtype_size(kind_.dtype), row_bytes = static_cast<size_t>(row_elems()) * size;
  for (int64_t r = 0; r < rows(); ++r) {
    std::memcpy(static_cast<char*>(data_) + static_cast<size_t>(r * row_stride_) * size,
                static_cast<const char*>(other.data_) + static_cast<size_t>(r * other.row_stride_) * size, row_bytes);
  }
}

const LoD& Tensor::lod() const {
  static const LoD none;
  return lod_ ? *lod_ : none;
}

void Tensor::set_lod(LoD lod) {
  if (initialized()) {
    check_lod(lod, rows());
  } else {
    check_lod(lod, -1);
  }
  lod_ = lod.empty() ? nullptr : std::make_shared<const LoD>(std::move(lod));
}

void Tensor::wrong_dtype(DType needed) const {
  AB_THROW(InvalidArgument, "a tensor must hold {}, got {}", dtype_name(needed), dtype_name(kind_.dtype));
}

}  // namespace anabranch
