#include "sparse/link_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace anabranch::sparse {
namespace {

constexpr float kMostInt8 = 127;
constexpr uint32_t kServedAge = 1;  // ages of rows that are only read do not matter

template <class T> void append_value(const T& value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T> T value_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// To the nearest, ties to even.
uint16_t to_bfloat16(float x) {
  const auto bits = value_at<uint32_t>(reinterpret_cast<const char*>(&x));
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bfloat16(uint16_t x) {
  const uint32_t bits = uint32_t{x} << 16;
  return value_at<float>(reinterpret_cast<const char*>(&bits));
}

void encode_int8(int64_t key, const char* numbers, int64_t width, std::string* to) {
  float most = 0;
  for (int64_t j = 0; j < width; ++j) {
    const auto x = value_at<float>(numbers + j * sizeof(float));
    AB_CHECK(std::isfinite(x), InvalidArgument, "rows must be finite to be written as int8, got {} in that of key {}",
             x, key);
    most = std::max(most, std::fabs(x));
  }
  float scale = most / kMostInt8;
  while (!std::isfinite(scale * kMostInt8)) scale = std::nextafter(scale, 0.0f);  // of the largest numbers
  append_value(scale, to);
  for (int64_t j = 0; j < width; ++j) {
    const auto x = value_at<float>(numbers + j * sizeof(float));
    const float q = scale > 0 ? std::clamp(std::nearbyint(x / scale), -kMostInt8, kMostInt8) : 0;
    append_value(static_cast<int8_t>(q), to);
  }
}

}  // namespace

size_t served_row_bytes(RowForm form, int64_t width) {
  const auto n = static_cast<size_t>(width);
  switch (form) {
    case RowForm::kFloat32: return sizeof(int64_t) + n * sizeof(float);
    case RowForm::kBFloat16: return sizeof(int64_t) + n * sizeof(uint16_t);
    case RowForm::kInt8: return sizeof(int64_t) + sizeof(float) + n;
    case RowForm::kTraining: break;
  }
  AB_THROW(InvalidArgument, "form {} of rows for serving is unknown", static_cast<int64_t>(form));
}

void encode_row(RowForm form, int64_t width, const char* row, std::string* to) {
  const auto key = value_at<int64_t>(row);
  const char* numbers = row + sizeof(int64_t) + sizeof(uint32_t);
  append_value(key, to);
  if (form == RowForm::kInt8) return encode_int8(key, numbers, width, to);
  if (form == RowForm::kFloat32) {
    to->append(numbers, static_cast<size_t>(width) * sizeof(float));
    return;
  }
  for (int64_t j = 0; j < width; ++j) append_value(to_bfloat16(value_at<float>(numbers + j * sizeof(float))), to);
}

void decode_rows(RowForm form, int64_t width, std::string_view rows, std::string* to) {
  const size_t bytes = served_row_bytes(form, width);
  to->clear();
  for (const char* row = rows.data(); row < rows.data() + rows.size(); row += bytes) {
    to->append(row, sizeof(int64_t));
    append_value(kServedAge, to);
    const char* numbers = row + sizeof(int64_t);
    if (form == RowForm::kFloat32) {
      to->append(numbers, static_cast<size_t>(width) * sizeof(float));
      continue;
    }
    const float scale = form == RowForm::kInt8 ? value_at<float>(numbers) : 0;
    if (form == RowForm::kInt8) numbers += sizeof(float);
    for (int64_t j = 0; j < width; ++j) {
      append_value(form == RowForm::kInt8 ? scale * static_cast<float>(value_at<int8_t>(numbers + j))
                                          : from_bfloat16(value_at<uint16_t>(numbers + j * sizeof(uint16_t))),
                   to);
    }
  }
}

}  // namespace anabranch::sparse
