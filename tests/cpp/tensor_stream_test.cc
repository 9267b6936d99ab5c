#include "io/tensor_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace anabranch::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

Tensor make_tensor() {
  Tensor t(Shape{2, 3}, DType::kFloat32);
  for (int i = 0; i < 6; ++i) t.mutable_data<float>()[i] = static_cast<float>(i);
  return t;
}

std::string stream(const Tensor& t) {
  std::string bytes;
  write_tensor(t, &bytes);
  return bytes;
}

std::string read_error(std::string bytes) {
  std::string_view in = bytes;
  try {
    read_tensor(&in, "variable w in file f");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(in.size(), bytes.size()) << "the input moved though nothing was read";
    return e.message();
  }
  return "";
}

TEST(TensorStream, HasTheBytesOfTheFormat) {
  const std::string bytes = stream(make_tensor());
  EXPECT_EQ(bytes.size(), 50u);
  EXPECT_EQ(hex(bytes.substr(0, 26)),
            "00000000"
            "0000000000000000"
            "00000000"
            "06000000"
            "080510021003");
}

TEST(TensorStream, RoundTripsTypesAndLoD) {
  for (const DType dtype : {DType::kBool, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16, DType::kFloat32,
                            DType::kFloat64, DType::kUInt8, DType::kInt8}) {
    Tensor t(Shape{6, 2}, dtype);
    std::memset(t.mutable_raw(), 1, t.bytes());
    t.set_lod(LoD{{0, 2, 3}, {0, 3, 4, 6}});
    const std::string bytes = stream(t) + "tail";
    std::string_view in = bytes;
    const Tensor back = read_tensor(&in, "w");
    EXPECT_EQ(in, "tail");
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.lod(), t.lod());
    EXPECT_EQ(stream(back), stream(t));
  }
}

TEST(TensorStream, EmptyTensorsRoundTrip) {
  const std::string bytes = stream(Tensor(Shape{0, 3}, DType::kFloat32));
  std::string_view in = bytes;
  EXPECT_EQ(read_tensor(&in, "w").shape(), Shape({0, 3}));
}

TEST(TensorStream, WritesThroughRowStrides) {
  Tensor record(Shape{2, 5}, DType::kFloat32);
  for (int i = 0; i < 10; ++i) record.mutable_data<float>()[i] = static_cast<float>(i % 5 < 3 ? i / 5 * 3 + i % 5 : -1);
  Tensor view;
  view.view(record.mutable_raw(), Shape{2, 3}, DType::kFloat32, nullptr, 5);
  EXPECT_EQ(stream(view), stream(make_tensor()));
}

TEST(TensorStream, EveryTruncationIsAnError) {
  Tensor t = make_tensor();
  t.set_lod(LoD{{0, 1, 2}});
  const std::string bytes = stream(t);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THAT(read_error(bytes.substr(0, n)), HasSubstr("variable w in file f")) << n;
  }
}

TEST(TensorStream, ErrorsNameVariableFileAndOffset) {
  EXPECT_EQ(read_error(stream(make_tensor()).substr(0, 40)),
            "variable w in file f: too few bytes: elements takes 24, 14 are left (at byte 26)");
}

TEST(TensorStream, DamagedHeadersAreErrors) {
  const auto with = [](size_t at, char value) {
    std::string bytes = stream(make_tensor());
    bytes[at] = value;
    return bytes;
  };
  EXPECT_THAT(read_error(with(0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(read_error(with(11, 0x7f)), HasSubstr("LoD levels"));
  EXPECT_THAT(read_error(with(12, 9)), HasSubstr("tensor version 9"));
  EXPECT_THAT(read_error(with(19, '\xff')), HasSubstr("the description has -"));
  EXPECT_THAT(read_error(with(21, 9)), HasSubstr("element type must be"));
  EXPECT_THAT(read_error(with(22, 9)), HasSubstr("unknown field"));
}

TEST(TensorStream, AHugeShapeAllocatesNothing) {
  std::string bytes = stream(make_tensor()).substr(0, 16);
  const std::string desc("\x08\x05\x10\xff\xff\xff\xff\xff\x01\x10\xff\xff\xff\xff\xff\x01", 16);
  bytes.append("\x10\0\0\0", 4).append(desc);
  const int64_t before = resident_buffer_bytes();
  EXPECT_THAT(read_error(bytes), HasSubstr("too many elements"));
  EXPECT_EQ(resident_buffer_bytes(), before);
}

TEST(TensorStream, RandomDamageNeverEscapesAsAnythingElse) {
  Tensor t = make_tensor();
  t.set_lod(LoD{{0, 1, 2}});
  const std::string good = stream(t);
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    read_error(bytes);  // checks the kind of what is thrown
  }
}

TEST(SelectedRowsStream, RoundTrips) {
  SelectedRows rows;
  rows.rows = {5, 2};
  rows.height = 9;
  rows.value = make_tensor();
  std::string bytes;
  write_selected_rows(rows, &bytes);
  EXPECT_EQ(bytes.size(), 4u + 8u + 16u + 8u + 4u + 4u + 6u + 24u);
  std::string_view in = bytes;
  const SelectedRows back = read_selected_rows(&in, "w");
  EXPECT_THAT(back.rows, ElementsAre(5, 2));
  EXPECT_EQ(back.height, 9);
  EXPECT_TRUE(in.empty());
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string_view cut = std::string_view(bytes).substr(0, n);
    EXPECT_THROW(read_selected_rows(&cut, "w"), Error);
  }
  bytes[12] = 9;  // a row id that the table does not have
  in = bytes;
  EXPECT_THROW(read_selected_rows(&in, "w"), Error);
}

TEST(TensorStream, WhatWasNeverWrittenCannotBeSaved) {
  std::string bytes;
  EXPECT_THROW(write_tensor(Tensor(), &bytes), Error);
}

}  // namespace
}  // namespace anabranch::io
