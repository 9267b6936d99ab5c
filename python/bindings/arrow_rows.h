// Tables with __arrow_c_stream__ (of pyarrow, polars, DuckDB and others) as raw rows.
#pragma once
#include "bind.h"
#include "data/row_inputs.h"

namespace anabranch::python {

// Whether the object is such a table, and no mapping, as data frames of pandas are.
bool is_arrow_table(nb::handle rows);

// Adds its rows. InvalidArgument names the row and the column whose value a file could not contain.
void add_arrow_rows(nb::handle table, data::RowInputs* inputs);

}  // namespace anabranch::python
