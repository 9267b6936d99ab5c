// data/: schemas, and raw rows of Python.
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "data/schema_text.h"
#include "row_values.h"

namespace anabranch::python {
namespace {

// [(name, whether it is float32, whether it is dense, values of a row, number of ids or 0)]
nb::list features(const std::string& schema) {
  nb::list out;
  for (const data::Feature& feature : data::features_of(data::parse_schema_text(schema))) {
    const data::Slot& slot = feature.slot;
    out.append(nb::make_tuple(slot.name, slot.is_float(), slot.dense, slot.shape[0], feature.ids));
  }
  return out;
}

RowReader* reader_of(const std::string& schema, std::vector<data::Slot> slots) {
  data::Schema inputs;
  inputs.slots = std::move(slots);
  inputs.check();
  return new RowReader(data::RowInputs(schema, std::move(inputs)));
}

// The inputs as arrays; lists as LoDTensors.
nb::list values_of(RowReader& reader, nb::handle rows) {
  reader.read(rows);
  nb::list out;
  for (const Tensor& tensor : reader.inputs().tensors()) {
    Tensor copy;
    copy.copy_from(tensor);
    out.append(fetched_to_python(std::move(copy), true));
  }
  return out;
}

}  // namespace

void bind_raw_rows(nb::module_& m) {
  m.def(
      "check_schema", [](const std::string& schema) { data::parse_schema_text(schema); }, nb::arg("schema"),
      "InvalidArgument names the feature and the step that cannot be understood.");
  m.def("schema_features", &features, nb::arg("schema"));
  nb::class_<JsonNumber>(m, "JsonNumber", "A number of JSON, which keeps its text.")
      .def(nb::init<std::string>(), nb::arg("text"))
      .def("__repr__", [](const JsonNumber& self) { return self.text; });
  nb::class_<RowReader>(m, "RowReader", "Raw rows of a schema as inputs of a model; one thread at a time.")
      .def("clone", &RowReader::clone, nb::rv_policy::take_ownership)
      .def_prop_ro("rows", [](RowReader& self) { return self.inputs().rows(); })
      .def("values", &values_of, nb::arg("rows").none())
      .def("columns", [](RowReader& self) {
        nb::list out;
        for (const auto& column : self.inputs().columns()) {
          out.append(column.number < 0 ? nb::object(nb::str(column.name.c_str(), column.name.size()))
                                       : nb::object(nb::int_(column.number)));
        }
        return out;
      });
  m.def("schema_reader", &reader_of, nb::rv_policy::take_ownership, nb::arg("schema"), nb::arg("slots"),
        "A RowReader for these inputs, each a feature.");
}

}  // namespace anabranch::python
