#include "data/row_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "data/file_head.h"
#include "data/number.h"

namespace anabranch::data {
namespace {

// The options of a line of a format, as steps.
std::shared_ptr<const Transform> transform_of(const ColumnRule& rule, const Slot& slot) {
  AB_CHECK(!slot.is_float() || (!rule.hash && !rule.split), InvalidArgument,
           "slot {} is float32: \"hash\" and \"split\" are for int64", slot.name);
  AB_CHECK(slot.is_float() || !rule.log, InvalidArgument, "slot {} is int64: \"log\" is for float32", slot.name);
  AB_CHECK(slot.is_float() || (rule.missing == std::trunc(rule.missing) && std::fabs(rule.missing) < 0x1p53),
           InvalidArgument, "slot {} is int64: the value of \"missing\" must be an integer", slot.name);
  AB_CHECK(!rule.ranged || !rule.hash, InvalidArgument, "slot {} is hashed: \"range\" is for numbers", slot.name);
  auto made = std::make_shared<Transform>();
  if (rule.hash) {
    made->steps.push_back({.op = Step::Op::kHash, .buckets = rule.hash});
    return made;
  }
  made->type = slot.is_float() ? Transform::Type::kNumber : Transform::Type::kInteger;
  if (rule.ranged) made->steps.push_back({.op = Step::Op::kRange, .low = rule.low, .high = rule.high});
  if (rule.log && rule.missing_last) made->steps.push_back({.op = Step::Op::kLog});
  made->steps.push_back({.op = Step::Op::kMissing, .low = rule.missing});
  if (rule.log && !rule.missing_last) made->steps.push_back({.op = Step::Op::kLog});
  return made;
}

void check_schema(const ColumnRule& rule, const Slot& slot) {
  const bool gives_float = rule.parts.empty() && rule.transform->gives_float();
  const bool gives_id = !rule.parts.empty() || rule.transform->gives_id();
  AB_CHECK(gives_float || gives_id, InvalidArgument,
           "feature {}: the last step of a text feature must be hash or vocabulary", slot.name);
  AB_CHECK(slot.is_float() == gives_float, InvalidArgument, "feature {} is {}, but variable {} is {}", slot.name,
           gives_float ? "float32" : "int64", slot.name, dtype_name(slot.dtype));
}

}  // namespace

// The state of write().
struct RowPlan::Row {
  const std::vector<Field>& fields;
  std::span<const size_t> places;
  uint32_t* out;
  Bad* bad;
  int64_t missing = 0;
  Cell cell{};

  bool refuse(const Field& field, size_t place, BadReason reason) const {
    *bad = {field.column, 0, reason, places[place]};
    return false;
  }
  // Whether a list with this number of values after the first one has as many as it must have.
  bool has(const SlotPlan& plan, uint32_t further, size_t place) const {
    if (!plan.values || further + 1 == plan.values) return true;
    return refuse(fields[places[place]], place, BadReason::kCountMismatch);
  }
};

RowPlan::RowPlan(const Schema& schema, const RowFormat& format, FileHeads* heads) {
  for (size_t i = 0; i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    if (!slot.used) continue;
    const auto rule = std::find_if(format.rules.begin(), format.rules.end(),
                                   [&](const ColumnRule& r) { return r.slot == slot.name; });
    AB_CHECK(rule != format.rules.end(), InvalidArgument, "the schema of the data has no {} {}",
             format.is_schema ? "feature" : "line for slot", slot.name);
    const auto columns = static_cast<int64_t>(rule->parts.empty() ? rule->columns.size() : 1);
    const bool any = rule->split && !rule->values;
    const int64_t values = columns * std::max<int64_t>(rule->values, 1);
    AB_CHECK(!slot.dense || (slot.values() == values && !any), InvalidArgument,
             "slot {} is dense, of shape {} a sample, but the schema gives it {} columns{}", slot.name,
             slot.shape.str(), columns, any ? ", to be split" : "");
    slots_.push_back(plan(slot, *rule, static_cast<int32_t>(i), heads));
    if (!rule->split) fixed_words_ += slots_.back().words_at_most({}, {});
  }
}

RowPlan::SlotPlan RowPlan::plan(const Slot& slot, const ColumnRule& rule, int32_t index, FileHeads* heads) {
  if (rule.transform || !rule.parts.empty()) check_schema(rule, slot);
  SlotPlan made;
  if (!rule.parts.empty()) {
    for (const ColumnRule& part : rule.parts) made.parts.push_back(plan_part(part, index, heads));
    made.buckets = rule.hash;
    made.salt = rule.cross_salt;
  } else {
    ColumnRule own = rule;
    if (!own.transform) own.transform = transform_of(rule, slot);
    made = plan_part(own, index, heads);
    const bool label = !slot.is_float() && slot.dense && !rule.hash && !rule.transform;
    made.required = rule.required || (label && !rule.has_missing);
  }
  made.is_float = slot.is_float();
  made.counted = !slot.dense;
  return made;
}

RowPlan::SlotPlan RowPlan::plan_part(const ColumnRule& rule, int32_t index, FileHeads* heads) {
  SlotPlan made;
  made.slot = index;
  made.split = rule.split;
  made.values = rule.values;
  made.plain_split = std::string_view("0123456789.-").find(rule.split) == std::string_view::npos;
  made.required = rule.required;
  made.transform = rule.transform;
  const std::vector<Step>& steps = rule.transform->steps;
  if (steps.size() == 1 && steps[0].op == Step::Op::kHash) made.only_hash = steps[0].buckets;
  const bool numbers = rule.transform->type != Transform::Type::kText && !rule.split;
  size_t place = heads->add(rule.columns, numbers);
  for (const ColumnRef& column : rule.columns) made.sources.push_back({place++, column.salt});
  return made;
}

// Each further separator of a list is a further value.
size_t RowPlan::SlotPlan::words_at_most(const std::vector<Field>& fields, std::span<const size_t> places) const {
  size_t words = 1 + 2 * std::max<size_t>(sources.size(), 1);  // a count, and a value of each column
  if (!split) return words;
  for (const Source& source : sources) words += 2 * fields[places[source.place]].text.size();
  return words;
}

// Several slots, or one slot several times, may use the values of one column.
size_t RowPlan::words_at_most(const std::vector<Field>& fields, std::span<const size_t> places) const {
  size_t words = fixed_words_;
  for (const SlotPlan& plan : slots_) {
    if (plan.split) words += plan.words_at_most(fields, places);
  }
  return words;
}

bool RowPlan::write(const std::vector<Field>& fields, std::span<const size_t> places, uint32_t** out, int64_t* missing,
                    Bad* bad) const {
  Row row{fields, places, *out, bad};
  for (const SlotPlan& plan : slots_) {
    if (!write_any(plan, &row)) return false;
  }
  *out = row.out;
  *missing += row.missing;
  return true;
}

bool RowPlan::write_slot(const SlotPlan& plan, const std::vector<Field>& fields, std::span<const size_t> places,
                         uint32_t** out, int64_t* missing, Bad* bad) {
  Row row{fields, places, *out, bad};
  if (!write_any(plan, &row)) return false;
  *out = row.out;
  *missing += row.missing;
  return true;
}

namespace {

bool apply(const Transform& transform, const Field& field, uint64_t salt, Cell* cell) {
  return field.is_number ? transform.apply(field.number, cell) : transform.apply(field.text, salt, cell);
}

}  // namespace

inline bool RowPlan::write_value(const SlotPlan& plan, const Field& field, const Source& source, Row* row) {
  if (plan.only_hash) {
    const uint64_t id = hashed_id(field.text, source.salt, plan.only_hash);
    std::memcpy(row->out, &id, sizeof id);
    row->out += 2;
    return true;
  }
  if (field.padded && !field.text.empty() && !field.is_number) {
    const char* at = field.text.data();
    bool good = false;
    if (write_plain(plan, &at, '\0', field, source, row, &good)) return good;
  }
  return write_cell(plan, apply(*plan.transform, field, source.salt, &row->cell), field, source, row);
}

// The result of a transform.
inline bool RowPlan::write_cell(const SlotPlan& plan, bool good, const Field& field, const Source& source, Row* row) {
  if (!good) return row->refuse(field, source.place, row->cell.bad);
  row->missing += row->cell.filled;
  if (plan.is_float) {
    std::memcpy(row->out++, &row->cell.number, sizeof row->cell.number);
  } else {
    std::memcpy(row->out, &row->cell.id, sizeof row->cell.id);
    row->out += 2;
  }
  return true;
}

// The fast way of most numbers and integers: the value at *at, up to the end of the padded field or to the character
// `after`, where *at is then. False, and nothing is written: the text is something else.
inline bool RowPlan::write_plain(const SlotPlan& plan, const char** at, char after, const Field& field,
                                 const Source& source, Row* row, bool* good) {
  const char* const last = field.text.data() + field.text.size();
  Cell& cell = row->cell;
  const char* end = nullptr;
  float number = 0;
  if (plan.transform->type == Transform::Type::kNumber) {
    end = fast_float(*at, &number);
  } else if (plan.transform->type == Transform::Type::kInteger) {
    end = fast_id(*at, &cell.id);
  }
  if (!end || end > last || (end < last && (after == '\0' || *end != after))) return false;
  *at = end;
  const bool is_number = plan.transform->type == Transform::Type::kNumber;
  bool fits = true;
  if (plan.transform->steps.empty()) {
    cell.number = number;
    cell.filled = false;
  } else {
    fits = is_number ? plan.transform->apply(number, &cell) : plan.transform->apply(cell.id, true, false, &cell);
  }
  *good = write_cell(plan, fits, field, source, row);
  return true;
}

bool RowPlan::write_any(const SlotPlan& plan, Row* row) {
  const bool good = plan.parts.empty() ? write_values(plan, row) : write_cross(plan, row);
  if (!good) row->bad->slot = plan.slot;
  return good;
}

bool RowPlan::write_values(const SlotPlan& plan, Row* row) {
  uint32_t* const count = row->out;
  if (plan.counted) ++row->out;
  auto values = static_cast<uint32_t>(plan.sources.size());
  for (const Source& source : plan.sources) {
    const Field& field = row->fields[row->places[source.place]];
    if (plan.required && field.text.empty()) return row->refuse(field, source.place, BadReason::kMissing);
    if (!(plan.split ? write_list(plan, source, row, &values) : write_value(plan, field, source, row))) return false;
  }
  if (plan.counted) *count = values;
  return true;
}

namespace {

// Whether a transform keeps values that are there.
bool keeps(const Transform& transform) {
  return transform.type != Transform::Type::kText &&
         std::all_of(transform.steps.begin(), transform.steps.end(),
                     [](const Step& step) { return step.op <= Step::Op::kAbsent; });
}

// Copies the numbers of a list to *out, up to one that the fast functions do not read: *at is then its start, or after
// `last` if there is none. Returns how many were copied.
template <bool kFloat> uint32_t copy_plain(const char** at, const char* last, char split, uint32_t** out) {
  const char* p = *at;
  uint32_t* o = *out;
  uint32_t copied = 0;
  for (const char* end = p; end != last; p = end + 1, ++copied) {
    std::conditional_t<kFloat, float, uint64_t> value;
    if constexpr (kFloat) {
      end = fast_float(p, &value);
    } else {
      end = fast_id(p, &value);
    }
    if (!end || end > last || (end < last && *end != split)) break;
    std::memcpy(o, &value, sizeof value);
    o += sizeof value / sizeof *o;
  }
  *at = p;
  *out = o;
  return copied;
}

}  // namespace

// Adds the number of further values to *count.
bool RowPlan::write_list(const SlotPlan& plan, const Source& source, Row* row, uint32_t* count) {
  Field rest = row->fields[row->places[source.place]];
  const uint32_t before = *count;
  if (rest.padded && plan.plain_split && !rest.text.empty() && keeps(*plan.transform)) {
    const char *at = rest.text.data(), *const last = at + rest.text.size();
    *count += plan.is_float ? copy_plain<true>(&at, last, plan.split, &row->out)
                            : copy_plain<false>(&at, last, plan.split, &row->out);
    if (at > last) {
      --*count;  // one value is counted already
      return row->has(plan, *count - before, source.place);
    }
    rest.column += at - rest.text.data();
    rest.text.remove_prefix(static_cast<size_t>(at - rest.text.data()));
  }
  for (;; ++*count) {
    const char* at = rest.text.data();
    bool good = false;
    if (rest.padded && plan.plain_split && !rest.text.empty() &&
        write_plain(plan, &at, plan.split, rest, source, row, &good)) {
      if (!good) return false;
      const auto end = static_cast<size_t>(at - rest.text.data());
      if (end == rest.text.size()) break;
      rest.text.remove_prefix(end + 1);
      rest.column += static_cast<int64_t>(end) + 1;
      continue;
    }
    const size_t end = rest.text.find(plan.split);
    if (!write_value(plan, {.text = rest.text.substr(0, end), .column = rest.column}, source, row)) return false;
    if (end == std::string_view::npos) break;
    rest.text.remove_prefix(end + 1);
    rest.column += static_cast<int64_t>(end) + 1;
  }
  return row->has(plan, *count - before, source.place);
}

// The hash of all parts, each with its length, seeded by those before it.
bool RowPlan::write_cross(const SlotPlan& plan, Row* row) {
  if (plan.counted) *row->out++ = 1;
  uint64_t hash = plan.salt;
  for (const SlotPlan& part : plan.parts) {
    const Source& source = part.sources.front();
    const Field& field = row->fields[row->places[source.place]];
    if (part.required && field.text.empty()) return row->refuse(field, source.place, BadReason::kMissing);
    if (!apply(*part.transform, field, source.salt, &row->cell)) {
      return row->refuse(field, source.place, row->cell.bad);
    }
    row->missing += row->cell.filled;
    const uint64_t id = row->cell.id;
    const std::string_view bytes(reinterpret_cast<const char*>(&id), sizeof id);
    hash = hash_bytes(part.transform->gives_id() ? bytes : row->cell.text, hash);
  }
  const uint64_t id = hash_to_id(hash, plan.buckets);
  std::memcpy(row->out, &id, sizeof id);
  row->out += 2;
  return true;
}

}  // namespace anabranch::data
