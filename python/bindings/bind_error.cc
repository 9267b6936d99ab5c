// C++ errors become the Python classes that anabranch.fluid.errors registers.
#include "base/error.h"
#include "base/interrupt.h"
#include "base/user_error.h"

#include <new>
#include <string_view>

#include "bind.h"
#include "engine/feed.h"

namespace anabranch::python {
namespace {

// dict: name of an ErrorKind, or BadFeed -> class; lives as long as the process
PyObject* error_classes = nullptr;

void raise(const char* name, std::string_view text) {
  PyObject* cls = error_classes ? PyDict_GetItemString(error_classes, name) : nullptr;
  // Messages may quote bytes of damaged files.
  PyObject* message = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (message) PyErr_SetObject(cls ? cls : PyExc_RuntimeError, message);
  Py_XDECREF(message);
}

// Python's exception, as it was raised.
void restore(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (nb::python_error& e) {
    e.restore();
  }
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Interrupted& e) {
    try {
      std::rethrow_exception(e.why);
    } catch (nb::python_error& error) {
      error.restore();
    }
  } catch (const BadFeed& e) {
    raise("BadFeed", e.text());
  } catch (const Error& e) {
    raise(error_kind_name(e.kind()), e.text());
  } catch (const UserError& e) {
    restore(e.cause());
  } catch (const std::bad_alloc&) {
    raise(error_kind_name(ErrorKind::kResourceExhausted), Error(ErrorKind::kResourceExhausted, "out of memory").text());
  }
}

}  // namespace

// Handlers of signals run in the thread that loaded the module, where Python is asked; what they raise ends the run.
void ask_python() {
  static const auto main_thread = PyThread_get_thread_ident();
  if (PyThread_get_thread_ident() != main_thread) return;
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() == 0) return;
  try {
    nb::raise_python_error();
  } catch (...) {
    throw Interrupted{std::current_exception()};
  }
}

void bind_error(nb::module_& m) {
  ask_python();  // notes the thread
  set_interrupt_question(ask_python);
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
