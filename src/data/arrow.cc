#include "data/arrow.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/number.h"

namespace anabranch::data {
namespace {

// Whether the float next to a double is also the one next to its text: the double is a normal float, and not in the
// middle between two.
bool is_rounded_once(double value) {
  constexpr double kSmallest = 1e-37, kLargest = 1e38;
  constexpr uint64_t kLacking = 0x1fffffff, kMiddle = 0x10000000;  // bits that a float lacks
  const double size = std::fabs(value);
  const bool one_side = (std::bit_cast<uint64_t>(value) & kLacking) != kMiddle;
  return std::isnan(value) || (one_side && (size == 0 || size >= kSmallest) && size <= kLargest);
}

template <class T> T at(const void* buffer, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(buffer) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class Offset> std::string_view slices(const ArrowArray& array, int64_t i, int64_t count) {
  const auto begin = at<Offset>(array.buffers[1], i), end = at<Offset>(array.buffers[1], i + count);
  if (begin == end) return {};
  return {static_cast<const char*>(array.buffers[2]) + begin, static_cast<size_t>(end - begin)};
}

template <class Offset> std::string_view slice(const ArrowArray& array, int64_t i) {
  return slices<Offset>(array, i, 1);
}

template <class Offset> bool same_slices(const ArrowArray& a, const ArrowArray& b) {
  const auto bytes = static_cast<size_t>(a.length + 1) * sizeof(Offset);
  if (std::memcmp(a.buffers[1], b.buffers[1], bytes) != 0) return false;
  return slices<Offset>(a, 0, a.length) == slices<Offset>(b, 0, b.length);
}

// A view has 16 bytes: a length, and up to 12 bytes of text, or its start, the number of a buffer and a position.
std::string_view view(const ArrowArray& array, int64_t i) {
  const char* const own = static_cast<const char*>(array.buffers[1]) + 16 * i;
  const auto size = static_cast<size_t>(at<int32_t>(own, 0));
  if (size <= 12) return {own + 4, size};
  const auto* text = static_cast<const char*>(array.buffers[2 + at<int32_t>(own, 2)]);
  return {text + at<int32_t>(own, 3), size};
}

template <class T> std::string_view spelled(T value, std::string* own) {
  char digits[32];
  own->assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *own;
}

// The bits of values that are not null; nullptr: no value is null.
const uint8_t* validity(const ArrowArray& array) {
  return array.n_buffers > 0 && array.null_count != 0 ? static_cast<const uint8_t*>(array.buffers[0]) : nullptr;
}

bool has_bit(const uint8_t* bits, int64_t i) { return bits[i / 8] >> (i % 8) & 1; }

constexpr uint32_t kQuietNan = 0x7fc00000;  // a number becomes NaN if these bits are set in it

// For four bits of a bitmap: the bits to set in four numbers.
struct NanMasks {
  alignas(16) uint32_t of[16][4];
  constexpr NanMasks() : of{} {
    for (uint32_t bits = 0; bits < 16; ++bits) {
      for (uint32_t i = 0; i < 4; ++i) of[bits][i] = bits >> i & 1 ? 0 : kQuietNan;
    }
  }
};
constexpr NanMasks kNanMasks;

// Numbers without a bit become NaN. Eight at a time, most of which have all bits.
void set_nan(const uint8_t* bits, int64_t begin, int64_t count, float* out) {
  constexpr int64_t kEight = 8;
  int64_t i = 0;
  for (; i < count && (begin + i) % kEight; ++i) out[i] = has_bit(bits, begin + i) ? out[i] : NAN;
  for (; i + kEight <= count; i += kEight) {
    const uint8_t eight = bits[(begin + i) / kEight];
    if (eight == 0xff) continue;
    uint32_t words[kEight];
    std::memcpy(words, out + i, sizeof words);
    for (int k = 0; k < 4; ++k) words[k] |= kNanMasks.of[eight & 15][k];
    for (int k = 0; k < 4; ++k) words[4 + k] |= kNanMasks.of[eight >> 4][k];
    std::memcpy(out + i, words, sizeof words);
  }
  for (; i < count; ++i) out[i] = has_bit(bits, begin + i) ? out[i] : NAN;
}

}  // namespace

bool is_null(const ArrowArray& array, int64_t i) {
  const uint8_t* const bits = validity(array);
  return bits && !has_bit(bits, i);
}

ArrowType::ArrowType(const ArrowSchema& schema, const std::string& column) : format_(schema.format) {
  struct Known {
    const char* format;
    Kind kind;
    int bytes;
  };
  static constexpr Known kKnown[] = {
      {"n", Kind::kNull, 0},     {"u", Kind::kText, 0},     {"U", Kind::kLargeText, 0}, {"vu", Kind::kTextView, 0},
      {"c", Kind::kSigned, 1},   {"s", Kind::kSigned, 2},   {"i", Kind::kSigned, 4},    {"l", Kind::kSigned, 8},
      {"C", Kind::kUnsigned, 1}, {"S", Kind::kUnsigned, 2}, {"I", Kind::kUnsigned, 4},  {"L", Kind::kUnsigned, 8},
      {"f", Kind::kFloat, 0},    {"g", Kind::kDouble, 0},   {"+l", Kind::kList, 0},     {"+L", Kind::kLargeList, 0},
      {"z", Kind::kText, 0},     {"Z", Kind::kLargeText, 0}};
  bool found = false;
  for (const Known& known : kKnown) {
    if (format_ != known.format) continue;
    kind_ = known.kind;
    bytes_ = known.bytes;
    found = true;
  }
  AB_CHECK(found, Unsupported,
           "column {} has the Arrow type {}, which is not supported: cast it to text, an integer or a float", column,
           format_);
  if (schema.dictionary) {
    dictionary_ = true;
    child_ = std::make_unique<ArrowType>(*schema.dictionary, column);
  } else if (is_list()) {
    child_ = std::make_unique<ArrowType>(*schema.children[0], column);
    AB_CHECK(!child_->is_list(), Unsupported, "column {} has lists of lists, which are not supported", column);
  }
}

std::string_view ArrowType::text(const ArrowArray& array, int64_t row, char split, std::string* own) const {
  const int64_t i = row + array.offset;
  if (kind_ == Kind::kNull || is_null(array, i)) return {};
  if (dictionary_) return child_->text(*array.dictionary, integer(array, i), split, own);
  switch (kind_) {
    case Kind::kText: return slice<int32_t>(array, i);
    case Kind::kLargeText: return slice<int64_t>(array, i);
    case Kind::kTextView: return view(array, i);
    case Kind::kList:
    case Kind::kLargeList: return list(array, i, split, own);
    default: return number(array, i, own);
  }
}

template <class F> void ArrowType::of_integer_type(F f) const {
  const bool is_signed = kind_ == Kind::kSigned;
  switch (bytes_) {
    case 1: return is_signed ? f(int8_t{}) : f(uint8_t{});
    case 2: return is_signed ? f(int16_t{}) : f(uint16_t{});
    case 4: return is_signed ? f(int32_t{}) : f(uint32_t{});
    default: return is_signed ? f(int64_t{}) : f(uint64_t{});
  }
}

bool ArrowType::numbers(const ArrowArray& array, int64_t row, int64_t count, float* out) const {
  const int64_t begin = row + array.offset;
  const auto fill = [&](auto type) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(at<decltype(type)>(array.buffers[1], begin + i));
  };
  bool clear = true;
  if (kind_ == Kind::kFloat) {
    fill(float{});
  } else if (kind_ == Kind::kDouble) {
    fill(double{});
    for (int64_t i = 0; i < count; ++i) clear &= is_rounded_once(at<double>(array.buffers[1], begin + i));
  } else {
    of_integer_type(fill);
  }
  if (const uint8_t* const bits = validity(array)) set_nan(bits, begin, count, out);
  return clear;
}

void ArrowType::integers(const ArrowArray& array, int64_t row, int64_t count, int64_t* out, uint8_t* missing) const {
  const int64_t begin = row + array.offset;
  std::fill_n(missing, count, uint8_t{0});
  if (const uint8_t* const bits = validity(array)) {
    for (int64_t i = 0; i < count; ++i) missing[i] = !has_bit(bits, begin + i);
  }
  of_integer_type([&](auto type) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(+at<decltype(type)>(array.buffers[1], begin + i));
  });
}

void ArrowType::texts(const ArrowArray& array, int64_t row, int64_t count, std::string_view* out) const {
  const int64_t begin = row + array.offset;
  const uint8_t* const bits = validity(array);
  const auto fill = [&](auto text_at) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = bits && !has_bit(bits, begin + i) ? std::string_view() : text_at(array, begin + i);
  };
  switch (kind_) {
    case Kind::kText: return fill(slice<int32_t>);
    case Kind::kLargeText: return fill(slice<int64_t>);
    default: return fill(view);
  }
}

bool ArrowType::may_contain(const ArrowArray& array, int64_t row, int64_t count, char character) const {
  const int64_t i = row + array.offset;
  const auto of_items = [&](int64_t begin, int64_t end) {
    return child_->may_contain(*array.children[0], begin, end - begin, character);
  };
  if (count == 0) return false;
  if (dictionary_) return child_->may_contain(*array.dictionary, 0, array.dictionary->length, character);
  switch (kind_) {
    case Kind::kText: return slices<int32_t>(array, i, count).find(character) != std::string_view::npos;
    case Kind::kLargeText: return slices<int64_t>(array, i, count).find(character) != std::string_view::npos;
    case Kind::kList: return of_items(at<int32_t>(array.buffers[1], i), at<int32_t>(array.buffers[1], i + count));
    case Kind::kLargeList: return of_items(at<int64_t>(array.buffers[1], i), at<int64_t>(array.buffers[1], i + count));
    case Kind::kTextView: return true;
    default: return false;
  }
}

bool ArrowType::same_entries(const ArrowArray& column, const ArrowArray& other) const {
  const ArrowArray *a = column.dictionary, *b = other.dictionary;
  if (!child_->is_text() || a->length != b->length || a->length == 0 || a->offset || b->offset || validity(*a) ||
      validity(*b))
    return false;
  if (child_->kind_ == Kind::kText) return same_slices<int32_t>(*a, *b);
  return child_->kind_ == Kind::kLargeText && same_slices<int64_t>(*a, *b);
}

bool ArrowType::number(const ArrowArray& array, int64_t row, float* out) const {
  return numbers(array, row, 1, out) && !std::isnan(*out);
}

int64_t ArrowType::integer(const ArrowArray& array, int64_t i) const {
  int64_t value = 0;
  of_integer_type([&](auto type) { value = static_cast<int64_t>(+at<decltype(type)>(array.buffers[1], i)); });
  return value;
}

std::string_view ArrowType::number(const ArrowArray& array, int64_t i, std::string* own) const {
  if (kind_ == Kind::kFloat) {
    const auto value = at<float>(array.buffers[1], i);
    return std::isnan(value) ? std::string_view() : spelled_float(value, own);
  }
  if (kind_ == Kind::kDouble) {
    const auto value = at<double>(array.buffers[1], i);
    return std::isnan(value) ? std::string_view() : spelled_float(value, own);
  }
  const int64_t value = integer(array, i);
  return kind_ == Kind::kUnsigned ? spelled(static_cast<uint64_t>(value), own) : spelled(value, own);
}

std::pair<int64_t, int64_t> ArrowType::range(const ArrowArray& array, int64_t i) const {
  const void* const ends = array.buffers[1];
  if (kind_ == Kind::kLargeList) return {at<int64_t>(ends, i), at<int64_t>(ends, i + 1)};
  return {at<int32_t>(ends, i), at<int32_t>(ends, i + 1)};
}

void ArrowType::items(const ArrowArray& array, int64_t row, int64_t count, std::vector<std::string_view>* out,
                      uint32_t* sizes) const {
  const uint8_t* const bits = validity(array);
  const int64_t first = row + array.offset;
  out->clear();
  for (int64_t i = first; i < first + count; ++i) {
    const auto [begin, end] = bits && !has_bit(bits, i) ? std::pair<int64_t, int64_t>() : range(array, i);
    const size_t before = out->size();
    out->resize(before + static_cast<size_t>(end - begin));
    if (end > begin) child_->texts(*array.children[0], begin, end - begin, out->data() + before);
    sizes[i - first] = static_cast<uint32_t>(end - begin);
  }
}

std::string_view ArrowType::list(const ArrowArray& array, int64_t i, char split, std::string* own) const {
  const auto [begin, end] = range(array, i);
  std::string joined, part;
  for (int64_t item = begin; item < end; ++item) {
    if (item > begin) joined += split;
    const std::string_view one = child_->text(*array.children[0], item, split, &part);
    AB_CHECK(one.find(split) == std::string_view::npos, InvalidArgument,
             "a value of a list contains the separator, got \"{}\"", one);
    joined += one;
  }
  *own = std::move(joined);
  return *own;
}

}  // namespace anabranch::data
