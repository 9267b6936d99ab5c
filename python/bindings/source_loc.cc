// The line of the user's program that makes an op: the innermost frame outside the package. A line is looked up once;
// afterwards its text comes from a table, so that taking a location costs about a microsecond.
#include "ir/source_loc.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "bind.h"

#ifdef Py_LIMITED_API
// Every CPython exports it and documents it, but the headers of the stable ABI leave it out, and have nothing else that
// tells a thread that has given the interpreter away from one that holds it.
extern "C" int PyGILState_Check(void);
#endif

namespace anabranch::python {
namespace {

constexpr int kMaxStack = 16;  // frames that are noted down, innermost ones
constexpr size_t kMaxKnownLines = 1 << 14;

struct Line {
  std::string file, function, code;
  int number = 0;
  std::string first, second;  // as op_callstack lists them
};

struct Key {
  PyObject* code;
  int line;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const { return std::hash<PyObject*>()(k.code) * 31 + static_cast<size_t>(k.line); }
};

// Both live as long as the process: they hold Python objects, which must not be released after Python has ended.
std::unordered_map<Key, Line, KeyHash>& known_lines() {
  static auto* lines = new std::unordered_map<Key, Line, KeyHash>();
  return *lines;
}
std::string& package_folder() {
  static auto* folder = new std::string();
  return *folder;
}

std::string_view utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* s = PyUnicode_AsUTF8AndSize(text, &size);
  if (!s) {
    PyErr_Clear();
    return {};
  }
  return {s, static_cast<size_t>(size)};
}

std::string source_text(PyObject* file, int line) {
  try {
    nb::object text = nb::module_::import_("linecache").attr("getline")(nb::borrow(file), line).attr("strip")();
    return nb::cast<std::string>(text);
  } catch (nb::python_error&) {
    return {};
  } catch (nb::cast_error&) {
    return {};
  }
}

// An attribute of a code object or a frame, whose fields the stable ABI does not show; None when there is none.
nb::object attribute(PyObject* of, PyObject* name) {
  nb::object value = nb::steal(PyObject_GetAttr(of, name));
  if (value.is_valid()) return value;
  PyErr_Clear();
  return nb::none();
}

nb::object file_of(PyObject* code) {
  static PyObject* const name = PyUnicode_InternFromString("co_filename");
  return attribute(code, name);
}

nb::object name_of(PyObject* code) {
  static PyObject* const name = PyUnicode_InternFromString("co_name");
  return attribute(code, name);
}

nb::object code_of(PyObject* frame) {
  static PyObject* const name = PyUnicode_InternFromString("f_code");
  return attribute(frame, name);
}

nb::object caller_of(PyObject* frame) {
  static PyObject* const name = PyUnicode_InternFromString("f_back");
  return attribute(frame, name);
}

const Line& line_of(PyObject* code, int number) {
  auto& lines = known_lines();
  const Key key{code, number};
  if (auto it = lines.find(key); it != lines.end()) return it->second;
  if (lines.size() >= kMaxKnownLines) {
    for (auto& [k, line] : lines) Py_DECREF(k.code);
    lines.clear();
  }
  Py_INCREF(key.code);  // an address stands for one code object only while that lives
  Line line;
  const nb::object file = file_of(code), function = name_of(code);
  line.file = utf8(file.ptr());
  line.function = utf8(function.ptr());
  line.number = number;
  line.code = source_text(file.ptr(), number);
  line.first = fmt::format("  File \"{}\", line {}, in {}", line.file, number, line.function);
  line.second = "    " + line.code;
  return lines.emplace(key, std::move(line)).first->second;
}

// Not the user's: the package's own, and that of `with`, which ends the blocks of loops and branches.
bool is_between(std::string_view file) {
  return file.starts_with(package_folder()) || file.ends_with("/contextlib.py");
}

SourceLoc locate() {
  SourceLoc loc;
  if (!Py_IsInitialized() || !PyGILState_Check()) return loc;
  int frames = 0;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none() && frames < kMaxStack) {
    const nb::object code = code_of(frame.ptr());
    const nb::object file = file_of(code.ptr());
    if (!is_between(utf8(file.ptr()))) {
      const Line& line = line_of(code.ptr(), PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr())));
      if (frames == 0) {
        loc.file = line.file;
        loc.line = line.number;
        loc.function = line.function;
        loc.code = line.code;
      }
      loc.stack.push_back(line.second);
      loc.stack.push_back(line.first);
      ++frames;
    }
    frame = caller_of(frame.ptr());
  }
  std::reverse(loc.stack.begin(), loc.stack.end());
  return loc;
}

}  // namespace

void install_source_locations(nb::module_& m) {
  m.def(
      "set_package_folder",
      [](std::string folder) {
        package_folder() = std::move(folder);
        set_source_loc_provider(&locate);
      },
      nb::arg("folder"), "Frames of files below this folder are the package's own, not the user's.");
}

}  // namespace anabranch::python
