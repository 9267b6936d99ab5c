// The text of an anabranch.Schema: JSON, the same in Settings::format and in a model's folder (__schema__.json).
//
//   {"version": 1, "separator": ",", "header": true, "ragged": false, "features": [
//     {"name": "price", "type": "number", "columns": ["price"], "steps": [["missing", 0], ["log"]]},
//     {"name": "tags", "type": "text", "columns": ["tags"], "split": "|", "steps": [["hash", 1000, "tag"]]},
//     {"name": "age_x_kind", "cross": [{"type": "number", ...}, {"type": "text", ...}], "hash": [5000, "age_x_kind"]}]}
//
// Columns are names of the header, or numbers from 0. Files of other lines have no separator, header and ragged:
//
//   {"version": 1, "lines": "multislot", "slots": ["price", "tags"], "features": [...]}    columns: slots
//   {"version": 1, "lines": "libsvm", "features": [...]}                                   data/pair_columns.h
//
// "values": 3 after "split" says how many values a list has. A feature becomes the input of this name; those of numbers
// without "bucketize" are float32, all others are int64.
#pragma once
#include <string>

#include "data/row_format.h"

namespace anabranch::data {

// Whether the text of a format is such a schema.
bool is_schema_text(const std::string& text);

// InvalidArgument names the feature and the step that cannot be understood. A feature of text may still lack the step
// that gives ids; RowPlan refuses it.
RowFormat parse_schema_text(const std::string& text);

// The input that a feature becomes, and the number of ids that it gives; 0: any, or numbers.
struct Feature {
  Slot slot;
  uint64_t ids = 0;
};
// InvalidArgument: a feature of text lacks the step that gives ids.
std::vector<Feature> features_of(const RowFormat& format);

}  // namespace anabranch::data
