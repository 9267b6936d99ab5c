// The steps of a feature in the text of a schema.
#pragma once
#include <string>

#include "data/row_format.h"
#include "data/schema_json.h"

namespace anabranch::data {

// Appends a step such as ["clip", 0, 100]. InvalidArgument if there is no such step, its arguments are wrong, or it
// does not apply to the value that the steps before it give.
void add_step(const Json& step, const std::string& where, ColumnRule* rule, Transform* transform);

}  // namespace anabranch::data
