// Tables of other libraries by the Arrow C data interface: structs whose layout its specification fixes, and the texts
// that their values have in a file. Nothing here needs a library of Arrow.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace anabranch::data {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// Whether the value at `i`, counted with the array's offset, is null.
bool is_null(const ArrowArray& array, int64_t i);

// The type of a column: texts, integers, floats, lists and dictionaries of them.
class ArrowType {
 public:
  // Unsupported for other types; `column` is for the message.
  ArrowType(const ArrowSchema& schema, const std::string& column);

  bool is_float() const { return values().kind_ == Kind::kFloat || values().kind_ == Kind::kDouble; }
  bool is_plain_float() const { return !child_ && is_float(); }
  bool is_integer() const { return !child_ && bytes_ > 0; }
  bool is_unsigned() const { return kind_ == Kind::kUnsigned; }
  bool is_text() const { return !child_ && kind_ >= Kind::kText && kind_ <= Kind::kTextView; }
  bool is_dictionary() const { return dictionary_; }
  bool is_list() const { return kind_ == Kind::kList || kind_ == Kind::kLargeList; }
  bool is_list_of_texts() const { return is_list() && child_->is_text(); }
  const std::string& format() const { return values().format_; }

  // The value of a float column as a float32, exactly as if its text were parsed. False: null, NaN, or a double whose
  // rounding depends on the text.
  bool number(const ArrowArray& array, int64_t row, float* out) const;
  // The text of a value as a file would contain it: empty for null and NaN, the items of a list with `split` between
  // them. It points into the array or into *own. InvalidArgument if an item contains `split`.
  std::string_view text(const ArrowArray& array, int64_t row, char split, std::string* own) const;
  // The text of an entry of a dictionary.
  std::string_view entry(const ArrowArray& array, int64_t number, std::string* own) const {
    return child_->text(*array.dictionary, number, 0, own);
  }
  // Whether two columns of this type, of texts without null in dictionaries, have the same dictionary.
  bool same_entries(const ArrowArray& a, const ArrowArray& b) const;
  // False: no text of these rows, nor an item of a list, contains the character. True: one may.
  bool may_contain(const ArrowArray& array, int64_t row, int64_t count, char character) const;

  // The values of several rows, for columns with the given property. is_plain_float, is_integer: as number() gives
  // them, or NaN for null; false if the rounding of one depends on its text.
  bool numbers(const ArrowArray& array, int64_t row, int64_t count, float* out) const;
  // is_integer, and is_dictionary (numbers of entries). With 64 bits and is_unsigned, their bits.
  void integers(const ArrowArray& array, int64_t row, int64_t count, int64_t* out, uint8_t* missing) const;
  // is_text. Null ones are empty.
  void texts(const ArrowArray& array, int64_t row, int64_t count, std::string_view* out) const;
  // is_list_of_texts: the items of all lists, one after another, and their number in each. Null items are empty.
  void items(const ArrowArray& array, int64_t row, int64_t count, std::vector<std::string_view>* out,
             uint32_t* sizes) const;

 private:
  enum class Kind { kNull, kText, kLargeText, kTextView, kSigned, kUnsigned, kFloat, kDouble, kList, kLargeList };
  const ArrowType& values() const { return child_ ? child_->values() : *this; }  // of a list or dictionary
  template <class F> void of_integer_type(F f) const;
  std::pair<int64_t, int64_t> range(const ArrowArray& array, int64_t at) const;  // of the items of a list
  int64_t integer(const ArrowArray& array, int64_t at) const;
  std::string_view number(const ArrowArray& array, int64_t at, std::string* own) const;
  std::string_view list(const ArrowArray& array, int64_t at, char split, std::string* own) const;

  std::string format_;
  Kind kind_ = Kind::kNull;
  int bytes_ = 0;                     // of an integer
  bool dictionary_ = false;           // the integers are positions in it
  std::unique_ptr<ArrowType> child_;  // of a list or dictionary
};

}  // namespace anabranch::data
