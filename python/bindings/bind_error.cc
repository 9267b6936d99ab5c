// C++ errors become the Python classes that anabranch.fluid.errors registers.
#include "base/error.h"

#include "bind.h"

namespace anabranch::python {
namespace {

PyObject* error_classes = nullptr;  // dict: name of an ErrorKind -> class; lives as long as the process

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& e) {
    PyObject* cls = error_classes ? PyDict_GetItemString(error_classes, error_kind_name(e.kind())) : nullptr;
    // Messages may quote bytes of damaged files.
    PyObject* text =
        PyUnicode_DecodeUTF8(e.what(), static_cast<Py_ssize_t>(std::string_view(e.what()).size()), "backslashreplace");
    if (text) PyErr_SetObject(cls ? cls : PyExc_RuntimeError, text);
    Py_XDECREF(text);
  }
}

}  // namespace

void bind_error(nb::module_& m) {
  nb::register_exception_translator(translate);
  m.def(
      "set_error_classes",
      [](nb::dict classes) {
        Py_XDECREF(error_classes);
        error_classes = classes.release().ptr();
      },
      nb::arg("classes"), "Classes of errors by the name of their kind.");
}

}  // namespace anabranch::python
