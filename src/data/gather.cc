#include "data/gather.h"

#include <cstring>

#include "base/error.h"

namespace anabranch::data {
namespace {

using Rows = std::vector<const uint32_t*>;

Shape tensor_shape(const Slot& slot, int64_t rows, int64_t values) {
  Shape shape{rows};
  int64_t known = 1;
  for (const int64_t extent : slot.shape) known *= extent > 0 ? extent : 1;
  for (const int64_t extent : slot.shape) shape.push_back(extent > 0 ? extent : values / known);
  return shape;
}

// Without a call for each sample, as memcpy of an unknown size would be.
inline void copy_words(uint32_t* to, const uint32_t* from, size_t words) {
  constexpr size_t kVector = 4, kMost = 64;
  constexpr size_t kBytes = kVector * sizeof(uint32_t);
  if (words < kVector) {
    for (size_t i = 0; i < words; ++i) to[i] = from[i];
  } else if (words > kMost) {
    std::memcpy(to, from, words * sizeof(uint32_t));
  } else {
    for (size_t i = 0; i + kVector < words; i += kVector) std::memcpy(to + i, from + i, kBytes);
    std::memcpy(to + words - kVector, from + words - kVector, kBytes);  // it may overlap the one before
  }
}

// A dense slot of known size: just its values.
void plain_column(const RecordShape::Part& part, Rows* rows, uint32_t* out) {
  const size_t words = part.words_of(part.fixed);
  if (words == 2) {  // one id, as in most models
    for (const uint32_t*& at : *rows) {
      std::memcpy(out, at, 8);
      out += 2;
      at += 2;
    }
    return;
  }
  for (const uint32_t*& at : *rows) {
    copy_words(out, at, words);
    out += words;
    at += words;
  }
}

// The same for samples of `words` words that follow each other; `from`: the values in the first one.
void adjacent_column(const RecordShape::Part& part, const uint32_t* from, size_t stride, int64_t rows, uint32_t* out) {
  const size_t words = part.words_of(part.fixed);
  for (int64_t i = 0; i < rows; ++i, from += stride, out += words) copy_words(out, from, words);
}

// A count and that many values.
void counted_column(const RecordShape::Part& part, Rows* rows, uint32_t* out) {
  for (const uint32_t*& at : *rows) {
    const size_t words = part.words_of(*at++);
    copy_words(out, at, words);
    out += words;
    at += words;
  }
}

// Samples of a dense slot whose extent follows from the data must agree.
int64_t equal_count(const Slot& slot, const Rows& rows) {
  const int64_t values = rows.empty() ? 0 : *rows.front();
  for (const uint32_t* at : rows) {
    AB_CHECK(*at == values, InvalidArgument,
             "slot {} is dense, of shape {} a sample, but one sample of a batch has {} values and another one has {}: "
             "use lod_level=1 for lists of different lengths",
             slot.name, slot.shape.str(), values, *at);
  }
  return values;
}

// The offsets of a column, written in place unless they are shared. Returns the number of values.
int64_t set_offsets(const Rows& rows, Tensor* to, std::shared_ptr<LoD>* lod) {
  to->set_lod(LoDRef());
  if (!*lod || lod->use_count() > 1) *lod = std::make_shared<LoD>(1);
  std::vector<int64_t>& offsets = (*lod)->front();
  offsets.assign(1, 0);
  int64_t total = 0;
  for (const uint32_t* at : rows) offsets.push_back(total += *at);
  return total;
}

}  // namespace

RowGather::RowGather(const Schema& schema) : schema_(schema), shape_(schema) {
  const std::vector<const Slot*> slots = schema.used();
  bool same_size = !schema.joins;
  for (size_t i = 0; i < slots.size(); ++i) {
    columns_.push_back({shape_.parts()[i], slots[i]});
    same_size &= shape_.parts()[i].fixed > 0;
  }
  for (const Column& column : columns_) words_ += same_size ? column.part.words_of(column.part.fixed) : 0;
}

// The first sample, if all samples have one size and follow each other in one block, as those of a stream do.
const uint32_t* RowGather::adjacent(const BatchScratch& scratch) const {
  if (words_ == 0 || scratch.rows.empty()) return nullptr;
  const RowAt& first = scratch.rows.front();
  bool follow = true;
  int64_t row = first.row;
  for (const RowAt& at : scratch.rows) follow &= at.block == first.block && at.row == row++;
  return follow ? first.block->row(first.row) : nullptr;
}

BatchScratch& RowGather::scratch(Batch* batch) {
  if (!batch->scratch_) batch->scratch_ = std::make_shared<BatchScratch>();
  batch->scratch_->rows.clear();
  return *batch->scratch_;
}

// Replaces the columns of which a sample has another number of values. After gather(), scratch.at is where the slots of
// each sample end.
void RowGather::join_uneven(const BatchScratch& scratch, Batch* batch) const {
  std::vector<bool> joined(columns_.size());
  for (size_t i = 0; i < scratch.rows.size(); ++i) {
    const uint32_t* const end = scratch.rows[i].block->row_end(scratch.rows[i].row);
    for (const uint32_t* at = scratch.at[i]; at != end; at = shape_.uneven(at).end)
      joined[shape_.uneven(at).slot] = true;
  }
  for (size_t slot = 0; slot < joined.size(); ++slot) {
    if (joined[slot]) join_column(scratch, slot, &batch->columns[slot]);
  }
}

// The values of all samples one after another, in rows of the slot's shape; a last row that is not full is dropped.
void RowGather::join_column(const BatchScratch& scratch, size_t slot, Tensor* to) const {
  const RecordShape::Part& part = columns_[slot].part;
  std::vector<uint32_t> values;
  for (size_t i = 0; i < scratch.rows.size(); ++i) {
    const RowAt& row = scratch.rows[i];
    const uint32_t* from = shape_.skip(row.block->row(row.row), slot);
    const uint32_t* to_word = from + part.words_of(part.fixed);
    for (const uint32_t* at = scratch.at[i]; at != row.block->row_end(row.row); at = shape_.uneven(at).end) {
      const RecordShape::Uneven list = shape_.uneven(at);
      if (list.slot == slot) from = list.values, to_word = list.end;
    }
    values.insert(values.end(), from, to_word);
  }
  const size_t words = part.words_of(part.fixed), rows = values.size() / words;
  to->resize(tensor_shape(*columns_[slot].slot, static_cast<int64_t>(rows), part.fixed), columns_[slot].slot->dtype);
  std::memcpy(to->mutable_raw(), values.data(), rows * words * sizeof(uint32_t));
}

void RowGather::gather(Batch* batch) const {
  BatchScratch& scratch = *batch->scratch_;
  const auto rows = static_cast<int64_t>(scratch.rows.size());
  batch->rows = rows;
  batch->columns.resize(columns_.size());
  scratch.lods.resize(columns_.size());
  scratch.at.clear();
  const uint32_t* first = adjacent(scratch);
  if (!first) {
    for (const RowAt& row : scratch.rows) scratch.at.push_back(row.block->row(row.row));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto& [part, slot] = columns_[i];
    Tensor& to = batch->columns[i];
    if (slot->dense) {
      to.resize(tensor_shape(*slot, rows, part.fixed ? part.fixed : equal_count(*slot, scratch.at)), slot->dtype);
    } else {
      const int64_t total = set_offsets(scratch.at, &to, &scratch.lods[i]);
      to.resize(Shape{total, 1}, slot->dtype);
      to.set_lod(LoDRef(scratch.lods[i]));
    }
    auto* out = static_cast<uint32_t*>(to.mutable_raw());
    if (first) {
      adjacent_column(part, first, words_, rows, out);
      first += part.words_of(part.fixed);
    } else {
      part.fixed ? plain_column(part, &scratch.at, out) : counted_column(part, &scratch.at, out);
    }
  }
  if (schema_.joins) join_uneven(scratch, batch);
  const auto texts = [&](bool there, std::vector<std::string> Block::*from, std::vector<std::string>* to) {
    to->resize(there ? scratch.rows.size() : 0);
    for (size_t i = 0; i < to->size(); ++i) {
      (*to)[i] = (scratch.rows[i].block->*from)[static_cast<size_t>(scratch.rows[i].row)];
    }
  };
  texts(schema_.ins_id, &Block::ins_ids, &batch->ins_ids);
  texts(schema_.content, &Block::contents, &batch->contents);
}

}  // namespace anabranch::data
