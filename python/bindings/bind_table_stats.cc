// data/: statistics of columns.
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "data/table_stats.h"

namespace anabranch::python {
namespace {

nb::object plain_text(const std::string& text) {  // bytes that are not UTF-8 as surrogates, as Python reads files
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

nb::dict column_dict(const data::ColumnStats& column, size_t heavy) {
  nb::dict out;
  out["name"] = plain_text(column.name());
  out["values"] = column.values;
  out["empty"] = column.empty;
  out["nan"] = column.nan;
  out["numbers"] = column.numbers;
  out["integers"] = column.integers;
  out["infinite"] = column.infinite;
  out["pipes"] = column.pipes;
  out["phrases"] = column.phrases;
  out["words"] = column.words;
  out["spelled"] = column.spelled;
  out["distinct_words"] = column.distinct_words().count();
  out["long_texts"] = column.long_texts;
  out["finite"] = column.finite();
  out["low"] = column.low;
  out["high"] = column.high;
  out["mean"] = column.mean;
  out["squares"] = column.squares;
  out["sample"] = column.sample();
  out["distinct"] = column.distinct().count();
  out["distinct_is_exact"] = column.distinct().is_exact();
  nb::list top;
  for (const auto& [text, count] : column.heavy().top(heavy)) top.append(nb::make_tuple(plain_text(text), count));
  out["heavy"] = top;
  out["heavy_lost"] = column.heavy().lost();
  return out;
}

}  // namespace

void bind_table_stats(nb::module_& m) {
  using T = data::TableStats;
  nb::class_<T>(m, "TableStats", "Statistics of the columns of text files; one thread at a time.")
      .def(nb::init<char, bool, bool>(), nb::arg("separator"), nb::arg("header"), nb::arg("ragged"))
      .def(
          "add", [](T& self, const std::string& path) { self.add(path, check_signals); }, nb::arg("path"),
          CallUnlocked())
      .def_prop_ro("rows", &T::rows)
      .def_prop_ro("bad", &T::bad)
      .def("shown_bad",
           [](const T& self) {
             nb::list out;
             for (const std::string& one : self.shown_bad()) out.append(plain_text(one));
             return out;
           })
      .def(
          "columns",
          [](const T& self, size_t heavy) {
            nb::list out;
            for (const auto& column : self.columns()) out.append(column_dict(column, heavy));
            return out;
          },
          nb::arg("heavy"));
}

}  // namespace anabranch::python
