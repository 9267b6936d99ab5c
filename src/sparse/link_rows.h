// Forms of rows in links. Rows of training have all of their numbers. Rows for serving have neither ages nor moments;
// their numbers are float32, bfloat16, or int8 with a scale for each row.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace anabranch::sparse {

enum class RowForm : int64_t { kTraining = 0, kFloat32 = 1, kBFloat16 = 2, kInt8 = 3 };

// Bytes of a row of `width` numbers for serving: its key (int64), its scale (float32) if the form is kInt8, its
// numbers.
size_t served_row_bytes(RowForm form, int64_t width);
// Appends a row of a table's file (key, age, `width` numbers and others) as a row for serving. InvalidArgument: a
// number is not finite, and the form is kInt8.
void encode_row(RowForm form, int64_t width, const char* row, std::string* to);
// The reverse: rows of a table without moments, all of one age.
void decode_rows(RowForm form, int64_t width, std::string_view rows, std::string* to);

}  // namespace anabranch::sparse
