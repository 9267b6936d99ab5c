// Text between Python and C++. A Python str can hold code points that UTF-8 cannot: bytes of file names (os.fsdecode),
// which become those bytes again, and halves of surrogate pairs, which become the three bytes they would take: a lookup
// of such a name fails, and code that stores a text refuses it. nanobind's own caster would report incompatible
// arguments.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace nanobind::detail {

template <> struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle src, uint32_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    if (!PyUnicode_Check(src.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(src.ptr(), &size)) [[likely]] {
      value.assign(text, static_cast<size_t>(size));
      return true;
    }
    for (const char* errors : {"surrogateescape", "surrogatepass"}) {
      PyErr_Clear();
      const object bytes = steal(PyUnicode_AsEncodedString(src.ptr(), "utf-8", errors));
      if (!bytes.is_valid()) continue;
      value.assign(PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr())));
      return true;
    }
    PyErr_Clear();
    return false;
  }

  static handle from_cpp(const std::string& text, rv_policy /*policy*/, cleanup_list* /*cleanup*/) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  }
};

}  // namespace nanobind::detail
