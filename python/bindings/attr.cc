// Conversion of attribute values between Python and ops.
#include "ir/attr.h"

#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "bind.h"

namespace anabranch::python {
namespace {

constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

// Integral floats count, too: scripts divide extents.
int64_t whole(nb::handle value, const std::string& name) {
  PyObject* number =
      PyFloat_Check(value.ptr()) && std::trunc(PyFloat_AsDouble(value.ptr())) == PyFloat_AsDouble(value.ptr())
          ? PyLong_FromDouble(PyFloat_AsDouble(value.ptr()))
          : PyNumber_Index(value.ptr());
  const long long v = number ? PyLong_AsLongLong(number) : -1;
  Py_XDECREF(number);
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    AB_THROW(InvalidArgument, "attribute {} must be a 64-bit integer, got {}", name, text_of(value));
  }
  return v;
}

bool is_bool(nb::handle value) {
  if (PyBool_Check(value.ptr())) return true;
  if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyUnicode_Check(value.ptr())) return false;
  const nb::str type = nb::type_name(value.type());
  const std::string_view name(type.c_str());  // NumPy 1 and 2 name it differently
  return name == "bool" || name.ends_with(".bool") || name.ends_with("bool_");
}

Attr scalar_attr(const std::string& name, nb::handle value) {
  if (is_bool(value)) return nb::cast<bool>(nb::bool_(value));
  if (nb::isinstance<nb::str>(value)) {
    auto text = nb::cast<std::string>(value);
    AB_CHECK(is_utf8(text), InvalidArgument, "attribute {} must be text, got {}", name, text);
    return text;
  }
  if (PyBytes_Check(value.ptr())) return std::string(PyBytes_AsString(value.ptr()), PyBytes_Size(value.ptr()));
  if (nb::isinstance<BlockRef>(value)) return nb::cast<BlockRef>(value);
  if (PyIndex_Check(value.ptr())) {
    const int64_t v = whole(value, name);
    if (v >= kIntMin && v <= kIntMax) return static_cast<int32_t>(v);
    return v;
  }
  const double v = PyFloat_AsDouble(value.ptr());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    AB_THROW(InvalidArgument, "attribute {} must be a number, text, bool, Block or a list of those, got {}", name,
             text_of(value));
  }
  return static_cast<float>(v);
}

template <class T, class Fn> std::vector<T> list_of(nb::sequence values, Fn convert) {
  std::vector<T> out;
  for (nb::handle v : values) out.push_back(convert(v));
  return out;
}

// The type of a list without a schema: that of its widest element.
AttrType list_type(const std::string& name, nb::sequence values) {
  bool any_float = false, any_long = false;
  for (nb::handle v : values) {
    const Attr a = scalar_attr(name, v);
    switch (attr_type(a)) {
      case AttrType::kString: return AttrType::kStrings;
      case AttrType::kBoolean: return AttrType::kBooleans;
      case AttrType::kBlock: return AttrType::kBlocks;
      case AttrType::kFloat: any_float = true; break;
      case AttrType::kLong: any_long = true; break;
      default: break;
    }
  }
  return any_float ? AttrType::kFloats : any_long ? AttrType::kLongs : AttrType::kInts;
}

int32_t narrow(const std::string& name, int64_t v) {
  AB_CHECK(v >= kIntMin && v <= kIntMax, InvalidArgument, "attribute {}: {} does not fit 32 bits", name, v);
  return static_cast<int32_t>(v);
}

Attr list_attr(const std::string& name, nb::sequence values, AttrType type) {
  auto item = [&](nb::handle v) { return scalar_attr(name, v); };
  auto element = [&]<class T>(nb::handle v, AttrType kind) { return std::get<T>(convert_attr(name, item(v), kind)); };
  switch (type) {
    case AttrType::kInts: return list_of<int32_t>(values, [&](nb::handle v) { return narrow(name, whole(v, name)); });
    case AttrType::kLongs: return list_of<int64_t>(values, [&](nb::handle v) { return whole(v, name); });
    case AttrType::kFloats:
      return list_of<float>(values,
                            [&](nb::handle v) { return element.template operator()<float>(v, AttrType::kFloat); });
    case AttrType::kStrings:
      return list_of<std::string>(
          values, [&](nb::handle v) { return element.template operator()<std::string>(v, AttrType::kString); });
    case AttrType::kBooleans:
      return list_of<bool>(values,
                           [&](nb::handle v) { return element.template operator()<bool>(v, AttrType::kBoolean); });
    default:
      return list_of<BlockRef>(
          values, [&](nb::handle v) { return element.template operator()<BlockRef>(v, AttrType::kBlock); });
  }
}

bool is_list_type(AttrType type) {
  switch (type) {
    case AttrType::kInts:
    case AttrType::kLongs:
    case AttrType::kFloats:
    case AttrType::kStrings:
    case AttrType::kBooleans:
    case AttrType::kBlocks: return true;
    default: return false;
  }
}

}  // namespace

Attr attr_from_python(const std::string& name, nb::handle value, std::optional<AttrType> needed) {
  const bool is_list = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if (is_list) {
    const auto values = nb::borrow<nb::sequence>(value);
    const AttrType type = needed && is_list_type(*needed) ? *needed : list_type(name, values);
    Attr attr = list_attr(name, values, type);
    return needed ? convert_attr(name, attr, *needed) : attr;
  }
  if (needed == AttrType::kFloat && PyIndex_Check(value.ptr()) && !is_bool(value)) {
    return static_cast<float>(whole(value, name));
  }
  Attr attr = scalar_attr(name, value);
  return needed ? convert_attr(name, attr, *needed) : attr;
}

nb::object attr_to_python(const Attr& attr) {
  return std::visit(
      [](const auto& v) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          // Serialized state travels in string attributes: not every one is text.
          PyObject* text = PyUnicode_DecodeUTF8(v.data(), static_cast<Py_ssize_t>(v.size()), nullptr);
          if (text) return nb::steal(text);
          PyErr_Clear();
          return nb::bytes(v.data(), v.size());
        } else {
          return nb::cast(v);
        }
      },
      attr);
}

}  // namespace anabranch::python
