// The slots of a row of fields: for each one its columns and the Transform of their values, prepared once. Parsers of
// lines and RowInputs share it, so both give the same bits. Constant, so any number of threads may use one.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/fields.h"
#include "data/row_format.h"

namespace anabranch::data {

class FileHeads;

class RowPlan {
 public:
  struct Bad {
    int64_t column;
    int32_t slot;
    BadReason reason;
    size_t field;  // its index
  };

  struct Source {  // of a value
    size_t place;  // index into `places`
    uint64_t salt;
  };
  struct SlotPlan {
    int32_t slot = 0;
    bool is_float = false;
    bool counted = false;  // a count precedes the values
    bool required = false;
    char split = 0;
    int64_t values = 0;       // of a list in a column; 0: any number
    bool plain_split = true;  // no number contains the separator
    uint64_t only_hash = 0;   // the transform is a hash with this number of ids: the fast path of most columns
    std::shared_ptr<const Transform> transform;
    std::vector<Source> sources;
    std::vector<SlotPlan> parts;  // of a cross
    uint64_t buckets = 0, salt = 0;

    size_t words_at_most(const std::vector<Field>& fields, std::span<const size_t> places) const;
  };

  // InvalidArgument if the format does not match the schema. Adds the columns to *heads.
  RowPlan(const Schema& schema, const RowFormat& format, FileHeads* heads);

  // Words that the slots of a row need at most. `places`: FileHead::columns.
  size_t words_at_most(const std::vector<Field>& fields, std::span<const size_t> places) const;
  // Writes the slots at *out, which then points to their end, and adds the number of filled fields to *missing. False:
  // *bad has the reason.
  bool write(const std::vector<Field>& fields, std::span<const size_t> places, uint32_t** out, int64_t* missing,
             Bad* bad) const;
  // The same for one of slots(); SlotPlan::words_at_most gives the number of its words.
  static bool write_slot(const SlotPlan& plan, const std::vector<Field>& fields, std::span<const size_t> places,
                         uint32_t** out, int64_t* missing, Bad* bad);
  const std::vector<SlotPlan>& slots() const { return slots_; }  // in the order of the schema's used slots

 private:
  struct Row;

  static SlotPlan plan(const Slot& slot, const ColumnRule& rule, int32_t index, FileHeads* heads);
  static SlotPlan plan_part(const ColumnRule& rule, int32_t index, FileHeads* heads);
  static bool write_any(const SlotPlan& plan, Row* row);
  static bool write_values(const SlotPlan& plan, Row* row);
  static bool write_cross(const SlotPlan& plan, Row* row);
  static bool write_list(const SlotPlan& plan, const Source& source, Row* row, uint32_t* count);
  static bool write_plain(const SlotPlan& plan, const char** at, char after, const Field& field, const Source& source,
                          Row* row, bool* good);
  static bool write_cell(const SlotPlan& plan, bool good, const Field& field, const Source& source, Row* row);
  static bool write_value(const SlotPlan& plan, const Field& field, const Source& source, Row* row);

  std::vector<SlotPlan> slots_;
  size_t fixed_words_ = 0;
};

}  // namespace anabranch::data
