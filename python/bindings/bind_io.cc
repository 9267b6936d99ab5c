// io/: files of variables, and whole files.
#include <nanobind/stl/shared_ptr.h>
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
  nb::class_<io::FileSet>(m, "FileSet", "Files that are written together: all of them, or none.")
      .def(nb::init<>())
      .def(
          "add",
          [](io::FileSet& files, const std::string& path, nb::bytes data) { files.add(path).write(view_of(data)); },
          nb::arg("path"), nb::arg("data"))
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> FileSet"))
      .def(
          "__exit__",
          [](io::FileSet& files, nb::handle error, nb::handle, nb::handle) {
            const Unlocked unlocked;
            error.is_none() ? files.commit() : files.drop();
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none());
  m.def("save_vars", &io::save_vars, nb::arg("scope"), nb::arg("names"), nb::arg("folder"), nb::arg("filename"),
        nb::arg("files"), CallUnlocked());
  m.def("load_vars", &io::load_vars, nb::arg("scope"), nb::arg("names"), nb::arg("folder"), nb::arg("filename"),
        CallUnlocked());
  m.def(
      "read_file", [](const std::string& path) { return as_bytes(io::read_file(path)); }, nb::arg("path"));
  m.def(
      "read_file_of",
      [](const std::string& folder, const std::string& path) { return as_bytes(io::read_file_of(folder, path)); },
      nb::arg("folder"), nb::arg("path"), "The same, but InvalidArgument when a link leads out of the folder.");
  m.def("check_file_of", &io::check_file_of, nb::arg("folder"), nb::arg("path"));
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
