#include "row_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "arrow_rows.h"
#include "base/error.h"
#include "base/near.h"
#include "data/number.h"

namespace anabranch::python {
namespace {

// An object that is made once and lives as long as the process.
nb::handle decimal_type() {
  static PyObject* const type = nb::module_::import_("decimal").attr("Decimal").inc_ref().ptr();
  return type;
}

std::string_view spelled(long long number, std::string* own) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  own->assign(digits, end);
  return *own;
}

// Dates of NumPy, or an array of them: depending on their unit, tolist makes integers of them.
bool are_dates(nb::handle value) {
  const nb::object kind = nb::getattr(nb::getattr(value, "dtype", nb::none()), "kind", nb::none());
  if (!nb::isinstance<nb::str>(kind)) return false;
  const std::string letter = text_of(kind);
  return letter == "M" || letter == "m";
}

constexpr const char* kTextOnly = "text must be a str or an int: 7 and 7.0 differ";
constexpr const char* kPlain = "a value must be a str, bytes, a number or None";
constexpr const char* kDates = "a date must be written as the text or the number of the file";

bool is_rows(nb::handle value) { return PyList_CheckExact(value.ptr()) || PyTuple_CheckExact(value.ptr()); }

// Also a data frame, or one of its rows.
bool is_mapping(nb::handle value) {
  return PyDict_Check(value.ptr()) || (PyMapping_Check(value.ptr()) && nb::hasattr(value, "keys"));
}

std::vector<std::string> names_of(nb::handle mapping) {
  std::vector<std::string> names;
  for (nb::handle key : nb::iter(mapping.attr("keys")())) names.push_back(text_of(key));
  return names;
}

}  // namespace

RowReader::RowReader(data::RowInputs inputs)
    : inputs_(std::move(inputs)), own_(inputs_.columns().size()), texts_(inputs_.columns().size()) {
  for (const Column& column : inputs_.columns()) {
    PyObject* key = column.number < 0 ? nb::str(column.name.c_str(), column.name.size()).release().ptr()
                                      : nb::int_(column.number).release().ptr();
    if (PyUnicode_CheckExact(key)) PyUnicode_InternInPlace(&key);
    keys_.push_back(nb::steal(key));
    const std::string shown = column.shown();
    spelled_.push_back(nb::str(shown.c_str(), shown.size()));
  }
}

void RowReader::read(nb::handle rows) {
  inputs_.clear();
  if (is_rows(rows)) {
    for (nb::handle row : nb::iter(rows)) read_row(row);
    return;
  }
  if (is_arrow_table(rows)) return add_arrow_rows(rows, &inputs_);
  AB_CHECK(is_mapping(rows), InvalidArgument, "rows must be a list of dicts or a dict of lists, got {}",
           Py_TYPE(rows.ptr())->tp_name);
  read_columns(rows);
}

void RowReader::read_row(nb::handle row) {
  if (is_rows(row)) return read_fields(row);
  const bool is_dict = PyDict_CheckExact(row.ptr());
  AB_CHECK(is_dict || is_mapping(row), InvalidArgument, "{} must be a dict of the columns and their values, got {}",
           row_name(), Py_TYPE(row.ptr())->tp_name);
  std::vector<nb::object> held;  // items that a mapping makes when it is read
  for (size_t i = 0; i < keys_.size(); ++i) {
    const nb::object value = of_column(row, i, is_dict);
    if (!is_dict) held.push_back(value);
    set(i, value);
  }
  add();
}

// None if it may be absent. A number of a column may also be spelled, as JSON has no other keys.
nb::object RowReader::of_column(nb::handle table, size_t column, bool is_dict) const {
  const bool numbered = inputs_.columns()[column].number >= 0;
  for (const nb::object* key : {&keys_[column], numbered ? &spelled_[column] : nullptr}) {
    if (!key) break;
    PyObject* const value =
        is_dict ? PyDict_GetItemWithError(table.ptr(), key->ptr()) : PyObject_GetItem(table.ptr(), key->ptr());
    if (value) return is_dict ? nb::borrow(value) : nb::steal(value);
    PyErr_Clear();
  }
  if (!inputs_.columns()[column].optional) lacks(column, table);
  return nb::none();
}

// By position, as in a file.
void RowReader::read_fields(nb::handle row) {
  const auto count = static_cast<int64_t>(nb::len(row));
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Column& column = inputs_.columns()[i];
    AB_CHECK(inputs_.takes_lists(), InvalidArgument,
             "{} must be a dict, because the schema has the names of the columns, got {}", row_name(),
             Py_TYPE(row.ptr())->tp_name);
    AB_CHECK(column.number < count, InvalidArgument, "{}: it must have a column {}, got {} values", row_name(),
             column.number, count);
    const nb::object value = row[static_cast<size_t>(column.number)];
    set(i, value);
    if (!texts_[i].empty() && texts_[i].data() != own_[i].data()) texts_[i] = own_[i] = std::string(texts_[i]);
  }
  add();
}

void RowReader::read_columns(nb::handle table) {
  std::vector<nb::object> columns;
  size_t first = keys_.size();  // of those that are there
  for (size_t i = 0; i < keys_.size(); ++i) {
    columns.push_back(of_column(table, i, false));
    nb::object& column = columns.back();
    if (column.is_none() && inputs_.columns()[i].optional) continue;
    AB_CHECK(!are_dates(column), InvalidArgument, "column {}: {}, got {}", inputs_.columns()[i].shown(), kDates,
             text_of(column.attr("dtype")));
    if (nb::hasattr(column, "tolist")) column = column.attr("tolist")();
    AB_CHECK(is_rows(column), InvalidArgument,
             "column {} must be a list or an array of values, got {}; a single row is "
             "[row]",
             inputs_.columns()[i].shown(), Py_TYPE(column.ptr())->tp_name);
    first = std::min(first, i);
    AB_CHECK(nb::len(column) == nb::len(columns[first]), InvalidArgument,
             "columns must have the same length, got {} for {} and {} for {}", nb::len(columns[first]),
             inputs_.columns()[first].shown(), nb::len(column), inputs_.columns()[i].shown());
  }
  const size_t rows = first == keys_.size() ? 0 : nb::len(columns[first]);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      PyObject* list = columns[i].ptr();
      const auto at = static_cast<Py_ssize_t>(row);
      set(i, list == Py_None ? list : PyList_Check(list) ? PyList_GetItem(list, at) : PyTuple_GetItem(list, at));
    }
    add();
  }
}

std::string_view RowReader::text(size_t column, nb::handle value, std::string* own) const {
  PyObject* const p = value.ptr();
  if (p == Py_None) return {};
  if (PyUnicode_Check(p)) {
    Py_ssize_t size = 0;
    if (const char* utf8 = PyUnicode_AsUTF8AndSize(p, &size)) return {utf8, static_cast<size_t>(size)};
    PyErr_Clear();
    *own = nb::cast<std::string>(value);  // bytes of a file that are not UTF-8
    return *own;
  }
  if (PyBool_Check(p)) refuse(column, value, "a bool has no single spelling: write the text or number of the file");
  if (PyLong_Check(p)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(p, &overflow);
    if (!overflow) return spelled(number, own);
    const nb::object digits = nb::steal(PyObject_Str(p));
    if (!digits.is_valid()) {
      PyErr_Clear();
      refuse(column, value, "an integer with this many digits must be written as a str");
    }
    return *own = text_of(digits);
  }
  if (PyFloat_Check(p)) {
    const double number = PyFloat_AsDouble(p);
    if (std::isnan(number)) return {};
    if (inputs_.columns()[column].is_text) refuse(column, value, kTextOnly);
    return data::spelled_float(number, own);
  }
  return other_text(column, value, own);
}

std::string_view RowReader::other_text(size_t column, nb::handle value, std::string* own) const {
  if (PyBytes_Check(value.ptr())) {
    return {PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))};
  }
  if (is_rows(value)) return list_text(column, value, own);
  if (nb::isinstance(value, decimal_type())) {
    if (inputs_.columns()[column].is_text) refuse(column, value, kTextOnly);
    return *own = text_of(value);
  }
  if (nb::isinstance<JsonNumber>(value)) {
    if (inputs_.columns()[column].is_text) refuse(column, value, kTextOnly);
    return nb::cast<JsonNumber&>(value).text;
  }
  if (nb::hasattr(value, "tolist")) {  // of NumPy
    if (are_dates(value)) refuse(column, value, kDates);
    const nb::object plain = value.attr("tolist")();
    if (nb::hasattr(plain, "tolist")) refuse(column, value, kPlain);  // a float of 80 bits stays what it is
    const std::string_view view = text(column, plain, own);
    return view.data() == own->data() ? view : std::string_view(*own = std::string(view));
  }
  refuse(column, value, kPlain);
}

std::string_view RowReader::list_text(size_t column, nb::handle value, std::string* own) const {
  const char split = inputs_.columns()[column].split;
  if (inputs_.columns()[column].two_splits) refuse(column, value, data::RowInputs::kTwoSplits);
  if (!split) refuse(column, value, "the column is not a list (split)");
  std::string joined, part;
  bool first = true;
  for (nb::handle item : nb::iter(value)) {
    if (!first) joined += split;
    first = false;
    if (is_rows(item)) refuse(column, item, "a list must contain values");
    const std::string_view one = text(column, item, &part);
    if (one.find(split) != std::string_view::npos) refuse(column, item, "a value of a list contains the separator");
    joined += one;
  }
  *own = std::move(joined);
  return *own;
}

void RowReader::refuse(size_t column, nb::handle value, const char* why) const {
  const nb::object shown = nb::steal(PyObject_Repr(value.ptr()));
  if (!shown.is_valid()) PyErr_Clear();
  AB_THROW(InvalidArgument, "{}: column {}: {}, got {} {}", row_name(), inputs_.columns()[column].shown(), why,
           Py_TYPE(value.ptr())->tp_name, shown.is_valid() ? text_of(shown) : "");
}

void RowReader::lacks(size_t column, nb::handle row) const {
  const std::string name = inputs_.columns()[column].shown();
  const std::vector<std::string> names = names_of(row);
  AB_THROW(InvalidArgument, "{}: there is no column {}, got {}{}", row_name(), name,
           names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")), near_name(name, names));
}

}  // namespace anabranch::python
