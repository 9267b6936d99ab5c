// A fetched value as an array of the caller's own, without a tensor in between.
#pragma once
#include "bind.h"

namespace anabranch::python {

// An array over the memory of a fetched value, kept for the next run; what the caller gets is a copy of it. Costs less
// than an array that owns a tensor.
class FetchedArray {
 public:
  nb::object copy(const Tensor& t) {
    if (!array_.is_valid() || data_ != t.raw() || dtype_ != t.dtype() || !(shape_ == t.shape())) {
      Tensor view;
      view.view(const_cast<void*>(t.raw()), t.shape(), t.dtype(), nullptr);
      array_ = array_view(std::move(view));
      data_ = t.raw();
      dtype_ = t.dtype();
      shape_ = t.shape();
    }
    static PyObject* const copy_name = PyUnicode_InternFromString("copy");
    nb::object copied = nb::steal(PyObject_CallMethodObjArgs(array_.ptr(), copy_name, nullptr));
    if (!copied.is_valid()) nb::raise_python_error();
    return copied;
  }

 private:
  nb::object array_;
  const void* data_ = nullptr;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
};

}  // namespace anabranch::python
