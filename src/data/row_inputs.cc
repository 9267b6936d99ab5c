#include "data/row_inputs.h"

#include <algorithm>

#include "base/error.h"
#include "data/file_head.h"
#include "data/gather.h"
#include "data/row_plan.h"
#include "data/row_texts.h"
#include "data/schema_text.h"

namespace anabranch::data {
namespace {

using Column = RowInputs::Column;

bool is_of(const Column& column, int64_t number, const std::string& name) {
  return column.number == number && column.name == name;
}

// The columns that were added to `heads`, each once; *places: where each added one is among them.
std::vector<Column> distinct_columns(const FileHeads& heads, bool optional, std::vector<size_t>* places) {
  std::vector<FileHeads::Column> found;
  *places = heads.distinct(&found);
  std::vector<Column> columns;
  for (const FileHeads::Column& one : found) {
    columns.push_back({.name = one.name, .number = one.number, .optional = optional && one.number >= 0});
  }
  return columns;
}

// Marks the columns of a feature with its type and separator.
void mark(const ColumnRule& rule, std::vector<Column>* columns) {
  for (const ColumnRule& part : rule.parts) mark(part, columns);
  for (const ColumnRef& used : rule.columns) {
    for (Column& column : *columns) {
      if (!is_of(column, used.number, used.name)) continue;
      column.is_text |= rule.transform->type == Transform::Type::kText;
      column.two_splits |= rule.split && column.split && rule.split != column.split;
      if (rule.split) column.split = rule.split;
    }
  }
}

void mark_one(const RowPlan::SlotPlan& plan, const std::vector<size_t>& places, std::vector<Column>* columns) {
  for (const RowPlan::SlotPlan& part : plan.parts) mark_one(part, places, columns);
  for (const auto& source : plan.sources) {
    Column& column = (*columns)[places[source.place]];
    if (plan.split != ' ' && column.one < 0) column.one = plan.slot;
  }
}

}  // namespace

struct RowInputs::Shared {
  Shared(const std::string& text, Schema given)
      : slots(std::move(given)),
        format(parse_schema_text(text)),
        heads(format),
        plan(slots, format, &heads),
        gather(slots),
        columns(distinct_columns(heads, format.lines == Lines::kLibsvm, &places)) {
    for (const ColumnRule& rule : format.rules) {
      const bool used = std::any_of(slots.slots.begin(), slots.slots.end(),
                                    [&](const Slot& slot) { return slot.used && slot.name == rule.slot; });
      if (used) mark(rule, &columns);
    }
    for (const RowPlan::SlotPlan& one : plan.slots()) mark_one(one, places, &columns);
  }

  const Schema slots;
  const RowFormat format;
  FileHeads heads;
  const RowPlan plan;
  const RowGather gather;
  std::vector<size_t> places;
  std::vector<Column> columns;
};

struct RowInputs::State {
  Block block;
  Batch batch;
  std::vector<Field> fields;
};

RowInputs::RowInputs(const std::string& schema, Schema slots)
    : RowInputs(std::make_shared<const Shared>(schema, std::move(slots))) {}

RowInputs::RowInputs(std::shared_ptr<const Shared> shared)
    : shared_(std::move(shared)), state_(std::make_unique<State>()) {}

RowInputs::RowInputs(RowInputs&&) noexcept = default;
RowInputs::~RowInputs() = default;

RowInputs RowInputs::clone() const { return RowInputs(shared_); }

const std::vector<RowInputs::Column>& RowInputs::columns() const { return shared_->columns; }
const Schema& RowInputs::slots() const { return shared_->slots; }
Lines RowInputs::lines() const { return shared_->format.lines; }
bool RowInputs::takes_lists() const { return lines() == Lines::kColumns && !shared_->format.header; }
int64_t RowInputs::rows() const { return state_->block.rows(); }

void RowInputs::clear() { state_->block.clear(); }

void RowInputs::add(std::span<const std::string_view> values) {
  AB_CHECK(values.size() == columns().size(), InvalidArgument, "row {}: it must have {} values, got {}", rows(),
           columns().size(), values.size());
  check_texts(values);
  if (lines() != Lines::kColumns) check_lines(values);
  State& state = *state_;
  state.fields.clear();
  for (const std::string_view value : values) state.fields.push_back({value, 1});
  RowWriter writer(&state.block);
  uint32_t* out = writer.room(shared_->plan.words_at_most(state.fields, shared_->places));
  int64_t missing = 0;
  RowPlan::Bad bad{};
  if (!shared_->plan.write(state.fields, shared_->places, &out, &missing, &bad))
    refuse(bad.field, bad.slot, bad.reason);
  writer.keep(out);
}

TableColumns RowInputs::table(std::vector<TableColumn> types) const {
  return {shared_->plan, shared_->places, std::move(types)};
}

bool RowInputs::add(const TableColumns& table, const TableBatch& batch, int64_t row, int64_t count,
                    TableColumns::Scratch* scratch) {
  for (size_t i = 0; i < columns().size(); ++i) {
    if (!columns()[i].is_text) continue;
    for (const char character : {'\n', shared_->format.separator == '\t' ? '\t' : '\n'}) {
      if (table.type(i).may_contain(batch.column(i), row, count, character)) return false;
    }
  }
  RowWriter writer(&state_->block);
  return table.write(batch, row, count, scratch, &writer);
}

// A text that a file cannot hold was in no row of the training data, and a reader would refuse or cut its line. Numbers
// hold neither character.
void RowInputs::check_texts(std::span<const std::string_view> values) const {
  const bool tabs = shared_->format.separator == '\t';  // such fields have no quotes
  for (size_t i = 0; i < values.size(); ++i) {
    const Column& column = columns()[i];
    if (!column.is_text) continue;
    const bool ends = values[i].find('\n') != std::string_view::npos;
    AB_CHECK(!ends && (!tabs || values[i].find('\t') == std::string_view::npos), InvalidArgument,
             "row {}: column {}: a text must not contain {}, because a field of a file cannot, got {}", rows(),
             column.shown(), ends ? "a line feed" : "the separator (tab)", shown_start(values[i]));
  }
}

void RowInputs::check_lines(std::span<const std::string_view> values) const {
  const RowTexts texts{lines(), columns(), values, rows(), shared_->format.slots};
  size_t at = 0;
  if (texts.check(&at)) return;
  state_->fields.assign(values.size(), {});
  state_->fields[at].text = values[at];
  refuse(at, columns()[at].one, BadReason::kCountMismatch);
}

void RowInputs::refuse(size_t field, int32_t slot, BadReason reason) const {
  AB_THROW(InvalidArgument, "row {}: column {}: {}, got {} (feature {})", rows(), columns()[field].shown(),
           bad_reason_text(reason), shown_start(state_->fields[field].text),
           shared_->slots.slots[static_cast<size_t>(slot)].name);
}

const std::vector<Tensor>& RowInputs::tensors() {
  BatchScratch& scratch = RowGather::scratch(&state_->batch);
  for (int64_t i = 0; i < rows(); ++i) scratch.rows.push_back({&state_->block, i});
  shared_->gather.gather(&state_->batch);
  return state_->batch.columns;
}

}  // namespace anabranch::data
