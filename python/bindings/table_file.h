// Files of Parquet and Arrow, opened by a function of Python and read through the stream interface of Arrow.
#pragma once
#include "bind.h"
#include "data/dataset.h"

namespace anabranch::python {

// open(path): (object with __arrow_c_stream__, number of rows). It is called in threads of the reader.
void set_open_table(data::Settings* settings, nb::object open);

}  // namespace anabranch::python
