// Rows without a file: RowInputs gives the tensors of a reader, and names what it refuses.
#include "data/row_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/gather.h"
#include "data/number.h"
#include "data/row_parser.h"

namespace anabranch::data {
namespace {

const char* const kText = R"({"version": 1, "separator": ",", "header": true, "ragged": false, "features": [
  {"name": "price", "type": "number", "columns": ["price"], "steps": [["missing", 7], ["log"]]},
  {"name": "tags", "type": "text", "columns": ["tags"], "split": "|", "steps": [["hash", 1000, "tag"]]},
  {"name": "kind", "type": "text", "columns": ["kind"], "steps": [["vocabulary", ["red", "blue"], true]]},
  {"name": "both", "cross": [{"type": "text", "columns": ["kind"]}, {"type": "text", "columns": ["tags"]}],
   "hash": [500, "both"]}]})";

Schema slots() {
  Schema s;
  s.slots = {{"price", DType::kFloat32, true, Shape{1}},
             {"tags", DType::kInt64},
             {"kind", DType::kInt64, true, Shape{1}},
             {"both", DType::kInt64, true, Shape{1}}};
  return s;
}

using Row = std::vector<std::string>;
const std::vector<Row> kRows = {{"1.5", "a|b|", "red"}, {"", "", ""}, {"1e30", "x", "blue"}, {"-2", "a", "Blue"}};

void add(RowInputs* rows, const Row& row) {
  const std::vector<std::string_view> values(row.begin(), row.end());
  rows->add(values);
}

std::vector<std::string> bytes_of(const std::vector<Tensor>& tensors) {
  std::vector<std::string> found;
  for (const Tensor& t : tensors) {
    std::string text = t.shape().str();
    if (!t.lod().empty()) text += fmt::format(" {}", fmt::join(t.lod()[0], ","));
    found.push_back(text.append(static_cast<const char*>(t.raw()), t.bytes()));
  }
  return found;
}

std::vector<std::string> read_lines() {
  std::string text = "price,tags,kind\n";
  for (const Row& row : kRows) text += fmt::format("{}\n", fmt::join(row, ","));
  const size_t size = text.size();
  text.append(kTextPadding, '\0');
  Settings settings;
  settings.schema = slots();
  settings.format = kText;
  const auto parser = make_parser(settings);
  Block block;
  parser->parse({text.data(), size}, parser->head(text.substr(0, text.find('\n')), "text"), &block);
  EXPECT_EQ(block.rows(), 4);
  Batch batch;
  BatchScratch& scratch = RowGather::scratch(&batch);
  for (int64_t i = 0; i < block.rows(); ++i) scratch.rows.push_back({&block, i});
  RowGather(settings.schema).gather(&batch);
  return bytes_of(batch.columns);
}

TEST(RowInputs, GivesTheTensorsOfAReader) {
  RowInputs rows(kText, slots());
  ASSERT_EQ(rows.columns().size(), 3u);
  EXPECT_EQ(rows.columns()[1].name, "tags");
  EXPECT_TRUE(rows.columns()[1].is_text && !rows.columns()[0].is_text);
  RowInputs other = rows.clone();
  for (RowInputs* one : {&rows, &other, &rows}) {
    one->clear();
    for (const Row& row : kRows) add(one, row);
    EXPECT_EQ(bytes_of(one->tensors()), read_lines());
  }
}

TEST(RowInputs, ARefusedRowIsNamedAndNotAdded) {
  RowInputs rows(kText, slots());
  add(&rows, kRows[0]);
  try {
    add(&rows, {"x", "a", "red"});
    FAIL() << "it was added";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "row 1: column price: a value is not a number, got \"x\" (feature price)");
  }
  EXPECT_THROW(add(&rows, {"1"}), Error);
  EXPECT_EQ(rows.rows(), 1);
  add(&rows, kRows[1]);
  EXPECT_EQ(rows.tensors()[0].rows(), 2);
}

TEST(RowInputs, ATextThatNoLineHoldsIsRefused) {
  RowInputs rows(kText, slots());
  std::string tabs = kText;
  tabs.replace(tabs.find("\",\""), 3, "\"\\t\"");
  RowInputs of_tabs(tabs, slots());
  EXPECT_THROW(add(&rows, {"1", "a\nb", "red"}), Error);
  EXPECT_THROW(add(&of_tabs, {"1", "a", "\n"}), Error);
  EXPECT_THROW(add(&of_tabs, {"1", "a\tb", "red"}), Error);
  EXPECT_EQ(rows.rows() + of_tabs.rows(), 0);
  add(&rows, {"1", "a\tb,\r\"", "red"});
  add(&of_tabs, {"1", "a,b", "\"red"});
  EXPECT_EQ(rows.rows() + of_tabs.rows(), 2);
}

TEST(BadReasons, TheLastOneIsKnownToTheCache) {
  EXPECT_NE(std::string(bad_reason_text(kLastBadReason)), "");
  EXPECT_EQ(std::string(bad_reason_text(static_cast<BadReason>(static_cast<int32_t>(kLastBadReason) + 1))), "");
}

TEST(SpelledFloat, IsWhatPythonWrites) {
  const std::pair<double, const char*> kKnown[] = {{5, "5.0"},
                                                   {-0.0, "-0.0"},
                                                   {100000, "100000.0"},
                                                   {1e16, "1e+16"},
                                                   {9999999999999998, "9999999999999998.0"},
                                                   {1e-4, "0.0001"},
                                                   {1e-5, "1e-05"},
                                                   {0.1, "0.1"},
                                                   {1.5e300, "1.5e+300"},
                                                   {INFINITY, "inf"},
                                                   {-INFINITY, "-inf"},
                                                   {123456.789, "123456.789"}};
  std::string own;
  for (const auto& [value, text] : kKnown) EXPECT_EQ(spelled_float(value, &own), text);
  EXPECT_EQ(spelled_float(0.1f, &own), "0.1");
  EXPECT_EQ(spelled_float(16777216.0f, &own), "16777216.0");
}

TEST(RowInputs, SlotsThatTheSchemaLacksAreRefused) {
  for (const Slot& slot :
       {Slot{"cost", DType::kFloat32, true, Shape{1}}, Slot{"price", DType::kInt64, true, Shape{1}},
        Slot{"price", DType::kFloat32, true, Shape{2}}, Slot{"tags", DType::kInt64, true, Shape{1}}}) {
    Schema s;
    s.slots = {slot};
    EXPECT_THROW(RowInputs(kText, s), Error) << slot.name;
  }
}

}  // namespace
}  // namespace anabranch::data
