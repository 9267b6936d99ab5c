#include "io/tensor_stream.h"

#include <cstring>

#include "core/host_copy.h"
#include "io/byte_reader.h"

namespace anabranch::io {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the streams are little endian and are copied as they are");

constexpr uint32_t kStreamVersion = 0;

template <class T> void put(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// The message VarType.TensorDesc: field 1 the element type, field 2 the extents, one by one.
std::string describe(const Tensor& tensor) {
  std::string desc;
  desc.push_back(0x08);
  put_varint(static_cast<uint64_t>(tensor.dtype()), &desc);
  for (const int64_t extent : tensor.shape()) {
    desc.push_back(0x10);
    put_varint(static_cast<uint64_t>(extent), &desc);
  }
  return desc;
}

void put_elements(const Tensor& tensor, std::string* out) {
  if (tensor.contiguous()) {
    out->append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    return;
  }
  const size_t size = dtype_size(tensor.dtype());
  const size_t row_bytes = static_cast<size_t>(tensor.row_elems()) * size;
  const size_t stride_bytes = static_cast<size_t>(tensor.row_stride()) * size;
  const char* row = static_cast<const char*>(tensor.raw());
  for (int64_t r = 0; r < tensor.rows(); ++r, row += stride_bytes) out->append(row, row_bytes);
}

// The end of both streams: version, description, elements.
void put_body(const Tensor& from, std::string* out) {
  AB_CHECK(from.initialized(), InvalidArgument, "a tensor that was never written cannot be saved");
  const Tensor tensor = on_host(from);
  put(kStreamVersion, out);
  const std::string desc = describe(tensor);
  put(static_cast<int32_t>(desc.size()), out);
  *out += desc;
  put_elements(tensor, out);
}

void get_version(ByteReader* in, const char* part) {
  const auto version = in->get<uint32_t>(part);
  AB_CHECK(version == kStreamVersion, InvalidArgument, "{}: {} {} is not supported, only {} is ({})", in->what(), part,
           version, kStreamVersion, in->here());
}

void get_desc(ByteReader* in, DType* dtype, Shape* shape) {
  const auto size = in->get<int32_t>("size of the description");
  AB_CHECK(size > 0, InvalidArgument, "{}: the description has {} bytes ({})", in->what(), size, in->here());
  ByteReader desc(in->take(static_cast<uint64_t>(size), "description"), in->what() + ", description");
  bool typed = false;
  while (!desc.done()) {
    const uint64_t key = desc.varint();
    if (key == 0x08) {
      *dtype = dtype_from_number(static_cast<int64_t>(desc.varint()));
      typed = true;
    } else if (key == 0x10) {
      const auto extent = static_cast<int64_t>(desc.varint());
      AB_CHECK(extent >= 0, InvalidArgument, "{}: extent {} is negative", in->what(), extent);
      shape->push_back(extent);
    } else {
      AB_THROW(InvalidArgument, "{}: the description has an unknown field ({})", in->what(), desc.here());
    }
  }
  AB_CHECK(typed && shape->rank() > 0, InvalidArgument, "{}: the description has no {}", in->what(),
           typed ? "extents" : "element type");
}

Tensor get_body(ByteReader* in) {
  get_version(in, "tensor version");
  DType dtype = DType::kFloat32;
  Shape shape;
  get_desc(in, &dtype, &shape);
  const uint64_t bytes = static_cast<uint64_t>(shape.numel()) * dtype_size(dtype);
  const std::string_view elements = in->take(bytes, "elements");
  Tensor tensor(shape, dtype);
  if (!elements.empty()) std::memcpy(tensor.mutable_raw(), elements.data(), elements.size());
  if (dtype == DType::kBool) {  // bytes other than 0 and 1 are not valid bools for the compiler
    auto* raw = static_cast<uint8_t*>(tensor.mutable_raw());
    for (size_t i = 0; i < elements.size(); ++i) raw[i] = raw[i] != 0;
  }
  return tensor;
}

LoD get_lod(ByteReader* in) {
  const auto levels = in->get<uint64_t>("number of LoD levels");
  AB_CHECK(levels <= kMaxRank, InvalidArgument, "{}: LoD levels must be at most {}, got {} ({})", in->what(), kMaxRank,
           levels, in->here());
  LoD lod;
  for (uint64_t i = 0; i < levels; ++i) {
    const auto bytes = in->get<uint64_t>("size of a LoD level");
    AB_CHECK(bytes % sizeof(uint64_t) == 0, InvalidArgument, "{}: LoD level {} has {} bytes, not a multiple of 8 ({})",
             in->what(), i, bytes, in->here());
    const std::string_view data = in->take(bytes, "LoD level");
    auto& offsets = lod.emplace_back(data.size() / sizeof(int64_t));
    if (!data.empty()) std::memcpy(offsets.data(), data.data(), data.size());
  }
  return lod;
}

// Errors of deeper layers (shape, dtype, LoD) do not know the variable: say it for them.
template <class Fn> auto reading(const std::string& what, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& e) {
    if (e.message().rfind(what, 0) == 0) throw;
    AB_THROW(InvalidArgument, "{}: {}", what, e.message());
  }
}

}  // namespace

void write_tensor(const Tensor& tensor, std::string* out) {
  put(kStreamVersion, out);
  put(static_cast<uint64_t>(tensor.lod().size()), out);
  for (const auto& level : tensor.lod()) {
    put(static_cast<uint64_t>(level.size() * sizeof(uint64_t)), out);
    for (const int64_t offset : level) put(static_cast<uint64_t>(offset), out);
  }
  put_body(tensor, out);
}

void write_selected_rows(const SelectedRows& rows, std::string* out) {
  put(kStreamVersion, out);
  put(static_cast<uint64_t>(rows.rows.size()), out);
  for (const int64_t id : rows.rows) put(id, out);
  put(rows.height, out);
  put_body(rows.value, out);
}

Tensor read_tensor(std::string_view* in, const std::string& what) {
  return reading(what, [&] {
    ByteReader reader(*in, what);
    get_version(&reader, "LoDTensor version");
    LoD lod = get_lod(&reader);
    Tensor tensor = get_body(&reader);
    tensor.set_lod(std::move(lod));
    *in = reader.rest();
    return tensor;
  });
}

SelectedRows read_selected_rows(std::string_view* in, const std::string& what) {
  return reading(what, [&] {
    ByteReader reader(*in, what);
    get_version(&reader, "SelectedRows version");
    SelectedRows rows;
    const auto count = reader.get<uint64_t>("number of rows");
    AB_CHECK(count <= reader.left() / sizeof(int64_t), InvalidArgument, "{}: {} row ids do not fit in {} bytes ({})",
             what, count, reader.left(), reader.here());
    const std::string_view ids = reader.take(count * sizeof(int64_t), "row ids");
    rows.rows.resize(count);
    if (count) std::memcpy(rows.rows.data(), ids.data(), ids.size());
    rows.height = reader.get<int64_t>("height");
    for (const int64_t id : rows.rows) {
      AB_CHECK(id >= 0 && id < rows.height, InvalidArgument, "{}: row id {} is outside [0, {})", what, id, rows.height);
    }
    rows.value = get_body(&reader);
    AB_CHECK(rows.value.rows() == static_cast<int64_t>(count), InvalidArgument, "{}: {} row ids for {} rows", what,
             count, rows.value.rows());
    *in = reader.rest();
    return rows;
  });
}

}  // namespace anabranch::io
