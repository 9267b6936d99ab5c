// io/: files of variables, and whole files.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "io/files.h"
#include "io/tensor_stream.h"

namespace anabranch::python {
namespace {

nb::bytes as_bytes(const std::string& s) { return nb::bytes(s.data(), s.size()); }
std::string_view view_of(const nb::bytes& b) { return {b.c_str(), b.size()}; }

}  // namespace

void bind_io(nb::module_& m) {
  m.def("save_vars", &io::save_vars, nb::arg("scope"), nb::arg("names"), nb::arg("folder"), nb::arg("filename"),
        CallUnlocked());
  m.def("load_vars", &io::load_vars, nb::arg("scope"), nb::arg("names"), nb::arg("folder"), nb::arg("filename"),
        CallUnlocked());
  m.def(
      "read_file", [](const std::string& path) { return as_bytes(io::read_file(path)); }, nb::arg("path"));
  m.def(
      "write_file_atomic", [](const std::string& path, nb::bytes data) { io::write_file_atomic(path, view_of(data)); },
      nb::arg("path"), nb::arg("data"));
  m.def(
      "tensor_to_bytes",
      [](TensorRef& t) {
        std::string out;
        io::write_tensor(t.get(), &out);
        return as_bytes(out);
      },
      nb::arg("tensor"));
  m.def(
      "tensor_from_bytes",
      [](nb::bytes data, const std::string& what) {
        std::string_view in = view_of(data);
        TensorRef t;
        t.own = io::read_tensor(&in, what);
        return nb::make_tuple(t, data.size() - in.size());
      },
      nb::arg("data"), nb::arg("what"), "(tensor, bytes read)");
}

}  // namespace anabranch::python
