#include "data/table_columns.h"

#include <emmintrin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace anabranch::data {
namespace {

constexpr size_t kTile = 4;

// Four columns of numbers to rows of `stride` words.
void put_tile(const float (*tile)[ValueRun::kRows], int64_t count, uint32_t* out, size_t stride) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4, out += 4 * stride) {
    __m128 a = _mm_load_ps(tile[0] + i), b = _mm_load_ps(tile[1] + i);
    __m128 c = _mm_load_ps(tile[2] + i), d = _mm_load_ps(tile[3] + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_castps_si128(a));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + stride), _mm_castps_si128(b));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * stride), _mm_castps_si128(c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * stride), _mm_castps_si128(d));
  }
  for (; i < count; ++i, out += stride) {
    for (size_t k = 0; k < kTile; ++k) std::memcpy(out + k, &tile[k][i], sizeof(float));
  }
}

bool is_number(const RowPlan::SlotPlan& plan, const ArrowType& type) {
  return type.is_plain_float() && !plan.split && plan.transform->type == Transform::Type::kNumber;
}

}  // namespace

bool set_field(const ArrowType& type, const ArrowArray& array, int64_t row, bool as_number, char split,
               std::string* own, Field* field) {
  field->is_number = as_number && type.number(array, row, &field->number);
  field->text = "0";
  if (field->is_number) return true;
  try {
    field->text = type.text(array, row, split, own);
    return true;
  } catch (const Error&) {
    field->text = {};
    return false;
  }
}

TableColumns::TableColumns(const RowPlan& plan, std::span<const size_t> places, std::vector<TableColumn> columns)
    : places_(places), columns_(std::move(columns)) {
  for (const RowPlan::SlotPlan& one : plan.slots()) {
    Slot slot{&one, {}, {}};
    for (const auto& source : one.sources) slot.fields.push_back(places[source.place]);
    const bool by_row =
        one.split || !one.parts.empty() ||
        std::any_of(slot.fields.begin(), slot.fields.end(), [&](size_t at) { return columns_[at].type->is_list(); });
    if (!by_row) {
      for (const auto& source : one.sources)
        slot.values.emplace_back(*columns_[places[source.place]].type, one, source.salt);
    }
    slot.hashes_lists = one.split && slot.fields.size() == 1 && one.only_hash && !one.required &&
                        columns_[slot.fields[0]].type->is_list_of_texts();
    for (const auto& part : one.parts) slot.fields.push_back(places[part.sources.front().place]);
    by_row_ += by_row;
    if (!by_row) fixed_words_ += one.counted + one.sources.size() * (one.is_float ? 1 : 2);
    slots_.push_back(std::move(slot));
  }
}

void TableColumns::prepare(TableBatch* batch, const TableBatch* last) const {
  std::vector<bool> same(columns_.size());
  for (size_t i = 0; last && i < columns_.size(); ++i) {
    const ArrowType* const type = columns_[i].type;
    same[i] = type && type->is_dictionary() && type->same_entries(batch->column(i), last->column(i));
  }
  for (const Slot& slot : slots_) {
    for (size_t i = 0; i < slot.values.size(); ++i) {
      const size_t at = slot.fields[i], number = batch->memos.size();
      batch->memos.push_back(last && same[at]
                                 ? last->memos[number]
                                 : std::make_shared<ColumnValues::Memo>(batch->column(at), batch->array.length));
    }
  }
}

bool TableColumns::write(const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch,
                         RowWriter* writer) const {
  scratch->run.filled = 0;
  scratch->words.clear();
  scratch->sizes.clear();
  for (const Slot& slot : slots_) {
    if (slot.values.empty() && !write_rows(slot, batch, row, count, scratch, &scratch->run.filled)) return false;
  }
  place_rows(count, scratch, writer);
  const uint32_t* words = scratch->words.data();
  const uint32_t* sizes = scratch->sizes.data();
  const std::shared_ptr<ColumnValues::Memo>* memo = batch.memos.data();
  size_t offset = 0;
  for (const Slot& slot : slots_) {
    if (!slot.values.empty()) {
      if (!write_columns(slot, batch, row, count, scratch, &offset, &memo)) return false;
      continue;
    }
    for (int64_t i = 0; i < count; ++i, words += *sizes++) {
      std::memcpy(scratch->rows[i] + offset, words, *sizes * sizeof(uint32_t));
      scratch->rows[i] += *sizes;  // what follows starts that much later
    }
  }
  if (by_row_ == 0) {
    writer->keep(scratch->rows[count - 1] + fixed_words_, count, fixed_words_);
  } else {
    for (int64_t i = 0; i < count; ++i) writer->keep(scratch->rows[i] + offset);
  }
  writer->add_missing(scratch->run.filled);
  return true;
}

// Where each row starts.
void TableColumns::place_rows(int64_t count, Scratch* scratch, RowWriter* writer) const {
  const auto rows = static_cast<size_t>(count);
  uint32_t* out = writer->room(fixed_words_ * rows + scratch->words.size());
  for (size_t i = 0; i < rows; ++i) {
    scratch->rows[i] = out;
    out += fixed_words_;
    for (size_t slot = 0; slot < by_row_; ++slot) out += scratch->sizes[slot * rows + i];
  }
}

bool TableColumns::write_rows(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch,
                              int64_t* missing) const {
  if (slot.hashes_lists) return write_lists(slot, batch, row, count, scratch);
  const auto& parts = slot.plan->parts;
  RowPlan::Bad bad{};
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < slot.fields.size(); ++k) {
      const size_t at = slot.fields[k];
      const auto& [type, split] = columns_[at];
      const bool number = is_number(parts.empty() ? *slot.plan : parts[k], *type);
      if (!set_field(*type, batch.column(at), row + i, number, split, &scratch->own[at], &scratch->fields[at]))
        return false;
    }
    const size_t begin = scratch->words.size();
    scratch->words.resize(begin + slot.plan->words_at_most(scratch->fields, places_));
    uint32_t* out = scratch->words.data() + begin;
    if (!RowPlan::write_slot(*slot.plan, scratch->fields, places_, &out, missing, &bad)) return false;
    scratch->words.resize(static_cast<size_t>(out - scratch->words.data()));
    scratch->sizes.push_back(static_cast<uint32_t>(scratch->words.size() - begin));
  }
  return true;
}

// Lists of texts that are hashed, without joining and cutting them. A list without items has one, which is empty: so it
// is with the text of the list.
bool TableColumns::write_lists(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count,
                               Scratch* scratch) const {
  const auto& [type, split] = columns_[slot.fields[0]];
  const ArrowArray& array = batch.column(slot.fields[0]);
  if (type->may_contain(array, row, count, split)) return false;
  uint32_t sizes[ValueRun::kRows];
  type->items(array, row, count, &scratch->items, sizes);
  const RowPlan::SlotPlan& plan = *slot.plan;
  const size_t begin = scratch->words.size(), rows = static_cast<size_t>(count);
  scratch->words.resize(begin + rows * 3 + 2 * scratch->items.size());
  uint32_t* out = scratch->words.data() + begin;
  const std::string_view *item = scratch->items.data(), empty;
  for (size_t i = 0; i < rows; ++i) {
    const uint32_t values = std::max(sizes[i], 1U);
    if (plan.values && values != plan.values) return false;
    if (plan.counted) *out++ = values;
    const std::string_view* const items = sizes[i] ? item : &empty;
    for (uint32_t k = 0; k < values; ++k, out += 2) {
      const uint64_t id = hashed_id(items[k], plan.sources[0].salt, plan.only_hash);
      std::memcpy(out, &id, sizeof id);
    }
    item += sizes[i];
    scratch->sizes.push_back(plan.counted + 2 * values);
  }
  scratch->words.resize(static_cast<size_t>(out - scratch->words.data()));
  return true;
}

bool TableColumns::write_columns(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count,
                                 Scratch* scratch, size_t* offset,
                                 const std::shared_ptr<ColumnValues::Memo>** memo) const {
  if (slot.plan->counted) {
    for (int64_t i = 0; i < count; ++i) scratch->rows[i][*offset] = static_cast<uint32_t>(slot.values.size());
    ++*offset;
  }
  for (size_t k = 0; k < slot.values.size(); ++k) {
    if (!slot.values[k].read(batch.column(slot.fields[k]), row, count, (*memo)++->get(), &scratch->run)) return false;
    put_column(k, slot, count, *offset, scratch);
    *offset += slot.plan->is_float ? 1 : 2;
  }
  return true;
}

// The values of column k of a slot, which start at `offset` of each row. Numbers of rows of one size wait for those of
// three further columns: four are written at once.
void TableColumns::put_column(size_t k, const Slot& slot, int64_t count, size_t offset, Scratch* scratch) const {
  uint32_t* const* const rows = scratch->rows;
  const ValueRun& run = scratch->run;
  const size_t first = k / kTile * kTile;  // of the columns that are written with this one
  if (!slot.plan->is_float) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(rows[i] + offset, &run.ids[i], sizeof run.ids[i]);
  } else if (by_row_ == 0 && first + kTile <= slot.values.size()) {
    std::memcpy(scratch->tile[k - first], run.numbers, static_cast<size_t>(count) * sizeof(float));
    if (k + 1 == first + kTile) put_tile(scratch->tile, count, rows[0] + offset - (kTile - 1), fixed_words_);
  } else {
    for (int64_t i = 0; i < count; ++i) std::memcpy(rows[i] + offset, &run.numbers[i], sizeof run.numbers[i]);
  }
}

}  // namespace anabranch::data
