// Program files against what Fluid wrote: equal content on the golden programs, and no damage that gets through.
#include "ir/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "ir/print.h"
#include "ir/well_formed.h"

namespace anabranch::ir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> golden_programs() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator("tests/golden/data")) {
    const std::string ending = entry.path().extension().string(), name = entry.path().filename().string();
    if (ending == ".pb" || ending == ".pdmodel" || name == "__model__") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// ---- bytes as text, in a form that is the same for two files with the same content: fields by number, attributes by
// name, fields that hold their default left out. Independent of the code under test.

struct Message {
  std::map<int, const Message*> parts;  // fields that are messages
  std::map<int, int64_t> defaults;      // fields that mean nothing when they hold this
  int sort_by = 0;                      // of a repeated message: the field to sort by
};

const Message kPlain{};
const Message kTensor{{}, {}, 0};
const Message kLoDTensor{{{1, &kTensor}}, {{2, 0}}, 0};
const Message kType{{{2, &kTensor}, {3, &kLoDTensor}, {4, &kLoDTensor}}, {}, 0};
const Message kVar{{{2, &kType}}, {{3, 0}, {4, 0}}, 0};
const Message kSlot{};
const Message kAttr{{}, {}, 1};
const Message kOp{{{1, &kSlot}, {2, &kSlot}, {4, &kAttr}}, {{5, 0}}, 0};
const Message kBlock{{{3, &kVar}, {4, &kOp}}, {{5, -1}}, 0};
const Message kVersion{};
const Message kProgram{{{1, &kBlock}, {4, &kVersion}}, {}, 0};

uint64_t varint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::string_view take(std::string_view* in, size_t n) {
  const std::string_view taken = in->substr(0, n);
  in->remove_prefix(n);
  return taken;
}

std::string normal_form(std::string_view in, const Message& message) {
  std::map<int, std::vector<std::string>> fields;
  while (!in.empty()) {
    const uint64_t key = varint(&in);
    const int number = static_cast<int>(key >> 3);
    if (&message == &kProgram && number == 3) {  // which ops changed in which release: not kept
      take(&in, varint(&in));
      continue;
    }
    if ((key & 7) == 0) {
      auto value = static_cast<int64_t>(varint(&in));
      if (&message == &kTensor && number == 2) value = std::max<int64_t>(value, kUnknown);
      auto standard = message.defaults.find(number);
      if (standard == message.defaults.end() || standard->second != value) {
        fields[number].push_back(std::to_string(value));
      }
    } else if ((key & 7) == 5) {
      fields[number].push_back("f" + std::string(take(&in, 4)));
    } else {
      const std::string_view bytes = take(&in, varint(&in));
      auto part = message.parts.find(number);
      fields[number].push_back(part == message.parts.end() ? std::string(bytes) : normal_form(bytes, *part->second));
    }
  }
  if (&message == &kType && fields[1][0] == "8") fields.erase(3);  // left over from before the variable became sparse
  std::string text = "{";
  for (auto& [number, values] : fields) {
    auto part = message.parts.find(number);
    if (part != message.parts.end() && part->second->sort_by) std::sort(values.begin(), values.end());
    for (const auto& value : values) text += std::to_string(number) + "=" + value + " ";
  }
  return text + "}";
}

TEST(Serialize, KeepsTheContentOfEveryGoldenProgram) {
  const auto paths = golden_programs();
  ASSERT_GT(paths.size(), 100u);
  for (const auto& path : paths) {
    const std::string bytes = read(path);
    const ProgramRef program = parse_program(bytes);
    EXPECT_EQ(serialize(*program), bytes) << "an unchanged program is written as it was read: " << path;
    const std::string again = serialize_canonical(*program);
    EXPECT_EQ(normal_form(again, kProgram) == normal_form(bytes, kProgram), true) << path;
    EXPECT_EQ(serialize(*parse_program(again)), again) << path;
    EXPECT_NO_THROW(check_well_formed(*program)) << path;
  }
}

TEST(Serialize, AClonedProgramHasTheSameBytes) {
  const auto program = parse_program(read("tests/golden/data/seq2seq/main.pb"));
  EXPECT_EQ(serialize(*program->clone()), serialize_canonical(*program));
  program->global_block().push_op(std::make_shared<Op>(*program->global_block().ops()[0]));
  EXPECT_EQ(serialize(*program), serialize_canonical(*program)) << "a changed program is written from its contents";
  EXPECT_EQ(to_text(*program->clone(), true), to_text(*program, true));
}

TEST(Serialize, EveryAttributeTypeRoundTrips) {
  const auto program = Program::make();
  program->create_block(0);
  auto op = std::make_shared<Op>();
  op->type = "any";
  op->attrs = {{"int", int32_t{-3}},
               {"float", 0.25f},
               {"string", std::string("a\0b", 3)},
               {"ints", std::vector<int32_t>{1, -2}},
               {"floats", std::vector<float>{1.5f}},
               {"strings", std::vector<std::string>{"x", ""}},
               {"bool", true},
               {"bools", std::vector<bool>{true, false}},
               {"block", BlockRef{1}},
               {"long", int64_t{1} << 40},
               {"blocks", std::vector<BlockRef>{{1}}},
               {"longs", std::vector<int64_t>{-1}},
               {"empty", std::vector<int64_t>{}}};
  program->global_block().push_op(op);
  const auto back = parse_program(serialize(*program));
  EXPECT_EQ(back->global_block().ops()[0]->attrs, op->attrs);
}

TEST(Serialize, ANewProgramIsOfTheVersionThatItsReadersKnow) {
  EXPECT_EQ(parse_program(serialize(*Program::make()))->file_version, kFileVersion);
}

TEST(Serialize, TheCallStackShowsWhereAnOpWasMade) {
  const auto program = Program::make();
  auto op = std::make_shared<Op>();
  op->type = "mul";
  op->made_at.stack = {"  File \"train.py\", line 41, in mlp", "    h = fluid.layers.fc(x, 10)",
                       "  File \"/lib/python3/fluid/layers/nn.py\", line 3, in fc", "    helper.append_op("};
  program->global_block().push_op(op);
  const auto back = parse_program(serialize(*program));
  const SourceLoc& loc = back->global_block().ops()[0]->made_at;
  EXPECT_EQ(loc.str(), "train.py:41 in mlp(): h = fluid.layers.fc(x, 10)");
  EXPECT_EQ(loc.stack, op->made_at.stack);
  EXPECT_FALSE(back->global_block().ops()[0]->has_attr("op_callstack"));
}

// ---- damage

// Parses; the result must be sound or InvalidArgument.
bool survives(std::string_view bytes) {
  try {
    const auto program = parse_program(bytes);
    serialize(*program);
    to_text(*program, true);
    try {
      check_well_formed(*program);
    } catch (const Error&) {
    }
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument) << e.what();
    return false;
  }
}

TEST(Parse, EveryTruncationIsHandled) {
  const std::string bytes = read("tests/golden/data/fit_a_line/main.pb");
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(survives(std::string_view(bytes).substr(0, n)) && n < 100);
}

TEST(Parse, EveryFlippedByteIsHandled) {
  const std::string bytes = read("tests/golden/data/fit_a_line/main.pb");
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      refused += !survives(damaged);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Parse, RandomDamageToProgramsWithBlocksIsHandled) {
  const std::string bytes = read("tests/golden/data/seq2seq/main.pb");
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.erase(random() % damaged.size(), random() % 50);
    survives(damaged);
  }
}

std::string field(int number, std::string_view bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + std::string(bytes);
}
std::string field(int number, int value) {
  return std::string(1, static_cast<char>(number << 3)) + static_cast<char>(value);
}
std::string block(int idx, int parent, const std::string& more = "") {
  std::string bytes = field(1, idx);
  // -1 is written as ten bytes
  bytes += parent < 0 ? std::string("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") : field(2, parent);
  return field(1, bytes + more);
}
std::string op(const std::string& attr) { return field(4, field(3, "any") + field(4, attr)); }
std::string var(const std::string& name, int kind) { return field(3, field(1, name) + field(2, field(1, kind))); }

std::string refusal(const std::string& bytes) {
  try {
    parse_program(bytes);
    return "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument);
    return e.message();
  }
}

TEST(Parse, StructureIsChecked) {
  EXPECT_EQ(refusal(block(0, -1)), "accepted");
  EXPECT_THAT(refusal(""), HasSubstr("no blocks"));
  EXPECT_THAT(refusal(block(1, -1)), HasSubstr("says that it is number 1"));
  EXPECT_THAT(refusal(block(0, 0)), HasSubstr("has a parent"));
  EXPECT_THAT(refusal(block(0, -1) + block(1, 1)),
              HasSubstr("the parent of block 1 must be a block before it, got block 1"));
  EXPECT_THAT(refusal(block(0, -1, field(5, 0))), HasSubstr("forward block"));
  EXPECT_THAT(refusal(block(0, -1, var("x", 7) + var("x", 7))), HasSubstr("two variables x"));
  EXPECT_THAT(refusal(block(0, -1, var("x", 5))), HasSubstr("type 5"));
  EXPECT_THAT(refusal(block(0, -1, var("", 7))), HasSubstr("name"));
  EXPECT_THAT(refusal(block(0, -1) + field(4, field(1, 1) + field(1, 2)) + field(4, "\x08\xff\xff\xff\x7f")),
              HasSubstr("version"));
}

TEST(Parse, AttributesMustHoldWhatTheyDeclare) {
  const auto refused = [](const std::string& attr) { return refusal(block(0, -1, op(attr))); };
  EXPECT_EQ(refused(field(1, "a") + field(2, 0) + field(3, 1)), "accepted");
  EXPECT_THAT(refused(field(1, "a") + field(2, 0)), HasSubstr("declared INT"));
  EXPECT_THAT(refused(field(1, "a") + field(2, 0) + field(5, "text")), HasSubstr("declared INT"));
  EXPECT_EQ(refused(field(1, "a") + field(2, 3)), "accepted");
  EXPECT_THAT(refused(field(1, "a") + field(2, 3) + field(8, "text")), HasSubstr("declared INTS"));
  EXPECT_THAT(refused(field(1, "op_role") + field(2, 2) + field(5, "x")), HasSubstr("op_role"));
}

TEST(Parse, SubBlocksCannotFormACycle) {
  const auto sub_block = [](int idx) { return op(field(1, "sub_block") + field(2, 8) + field(12, idx)); };
  EXPECT_EQ(refusal(block(0, -1, sub_block(1)) + block(1, 0)), "accepted");
  EXPECT_THAT(refusal(block(0, -1, sub_block(0))), HasSubstr("sub-block"));
  EXPECT_THAT(refusal(block(0, -1, sub_block(2)) + block(1, 0)), HasSubstr("sub-block"));
  EXPECT_THAT(refusal(block(0, -1, sub_block(1)) + block(1, 0, sub_block(1))), HasSubstr("sub-block"));
}

}  // namespace
}  // namespace anabranch::ir
