// Tensors and numpy arrays, through the buffer protocol one way and nanobind's arrays the other.
#include <nanobind/ndarray.h>

#include <cstring>

#include "bind.h"
#include "core/row_locks.h"

namespace anabranch::python {
namespace {

class Buffer {
 public:
  explicit Buffer(nb::handle array) {
    held_ = PyObject_GetBuffer(array.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0;
    if (!held_) PyErr_Clear();
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  bool held() const { return held_; }
  const Py_buffer* operator->() const { return &view_; }
  bool contiguous() const { return PyBuffer_IsContiguous(&view_, 'C') != 0; }

 private:
  Py_buffer view_;
  bool held_;
};

// The element type of a struct-module format of native byte order; empty if there is none.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t item_bytes) {
  if (!format) return DType::kUInt8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 0 || format[1] != 0) return {};
  switch (*format) {
    case '?': return DType::kBool;
    case 'b': return DType::kInt8;
    case 'B': return DType::kUInt8;
    case 'h': return DType::kInt16;
    case 'H':  // halves are passed as their bits, as in Fluid
    case 'e': return DType::kFloat16;
    case 'f': return DType::kFloat32;
    case 'd': return DType::kFloat64;
    case 'i':
    case 'l':
    case 'q':
      if (item_bytes == 4) return DType::kInt32;
      if (item_bytes == 8) return DType::kInt64;
      return {};
    default: return {};
  }
}

nb::object numpy() { return nb::module_::import_("numpy"); }

// The array in native byte order, row-major; Python sequences and scalars become arrays.
nb::object plain_array(nb::handle array) {
  nb::object np = numpy();
  nb::object plain = np.attr("asarray")(array);
  nb::object dtype = plain.attr("dtype");
  if (!nb::cast<bool>(dtype.attr("isnative"))) plain = plain.attr("astype")(dtype.attr("newbyteorder")("="));
  // ascontiguousarray would make a scalar an array of rank 1.
  return np.attr("array")(plain, nb::arg("order") = "C", nb::arg("copy") = true);
}

bool view_buffer(const Buffer& buffer, std::shared_ptr<void> owner, Tensor* out) {
  if (!buffer.held() || !buffer.contiguous()) return false;
  const auto dtype = dtype_of_format(buffer->format, buffer->itemsize);
  if (!dtype) return false;
  AB_CHECK(buffer->ndim <= kMaxRank, InvalidArgument, "an array has at most {} axes, got {}", kMaxRank, buffer->ndim);
  Shape shape;
  for (int i = 0; i < buffer->ndim; ++i) shape.push_back(buffer->shape[i]);
  if (shape.rank() == 0) shape.push_back(1);
  out->view(buffer->buf, shape, *dtype, std::move(owner));
  return true;
}

nb::dlpack::dtype array_dtype(DType dtype) {
  using nb::dlpack::dtype_code;
  const auto bits = static_cast<uint8_t>(8 * dtype_size(dtype));
  AB_CHECK(dtype != DType::kBFloat16, Unsupported, "NumPy has no bfloat16: ask for a cast to float32");
  if (dtype == DType::kBool) return {static_cast<uint8_t>(dtype_code::Bool), 8, 1};
  if (dtype == DType::kUInt8) return {static_cast<uint8_t>(dtype_code::UInt), 8, 1};
  if (dtype_is_float(dtype)) return {static_cast<uint8_t>(dtype_code::Float), bits, 1};
  return {static_cast<uint8_t>(dtype_code::Int), bits, 1};
}

// NumPy counts the bytes of all extents other than 0.
void check_numpy_holds(const Tensor& empty) {
  auto bytes = static_cast<int64_t>(dtype_size(empty.dtype()));
  for (const int64_t extent : empty.shape()) {
    AB_CHECK(extent == 0 || !__builtin_mul_overflow(bytes, extent, &bytes), ResourceExhausted,
             "NumPy has no arrays of shape {}", empty.shape().str());
  }
}

}  // namespace

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  const char* s = text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), nullptr) : nullptr;
  if (!s) PyErr_Clear();
  return s ? s : "?";
}

bool view_array(nb::handle array, Tensor* out) {
  static PyObject* const array_type_object = nb::object(numpy().attr("ndarray")).release().ptr();
  static PyTypeObject* const array_type = reinterpret_cast<PyTypeObject*>(array_type_object);
  if (Py_TYPE(array.ptr()) != array_type) return false;
  const Buffer buffer(array);
  return view_buffer(buffer, nullptr, out) && out->raw() != nullptr;
}

Tensor borrow_array(nb::handle array) {
  Tensor t;
  {
    const Buffer buffer(array);
    if (view_buffer(buffer, nullptr, &t)) {
      if (!t.raw()) t = Tensor(t.shape(), t.dtype());  // an empty array may have no memory
      return t;
    }
  }
  const nb::object plain = plain_array(array);
  const Buffer buffer(plain);
  AB_CHECK(view_buffer(buffer, nullptr, &t), InvalidArgument,
           "arrays are of dtype bool, int8, int16, int32, int64, uint8, float16, float32 or float64, got {}",
           text_of(plain.attr("dtype")));
  Tensor own;
  own.resize(t.shape(), t.dtype());
  if (t.bytes()) std::memcpy(own.mutable_raw(), t.raw(), t.bytes());
  return own;
}

nb::object array_view(Tensor tensor) {
  if (!tensor.contiguous()) {
    Tensor dense;
    dense.copy_from(tensor);
    tensor = std::move(dense);
  }
  if (tensor.numel() == 0) check_numpy_holds(tensor);
  size_t shape[kMaxRank];
  const auto rank = static_cast<size_t>(tensor.shape().rank());
  for (size_t i = 0; i < rank; ++i) shape[i] = static_cast<size_t>(tensor.shape()[static_cast<int>(i)]);
  auto* keeper = new Tensor(std::move(tensor));
  nb::capsule owner(keeper, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy>(keeper->mutable_raw(), rank, shape, owner, nullptr, array_dtype(keeper->dtype())),
      nb::rv_policy::reference);
}

nb::object array_copy(const Tensor& tensor) {
  if (!tensor.initialized()) return numpy().attr("zeros")(0);  // of float64, as in Fluid
  Tensor copy;
  {
    const RowLocks::HoldAll whole_rows(RowLocks::shared());
    copy.copy_from(tensor);
  }
  return array_view(std::move(copy));
}

}  // namespace anabranch::python
