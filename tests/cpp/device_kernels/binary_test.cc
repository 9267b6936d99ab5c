// Kernels of two operands that meet element by element, and their gradients.
#include "host_kernels.h"
#include "ops/device/args_math.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {
namespace {

struct Meeting {  // strides: result, x, y
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;
  size_t out, x, y;  // elements
};

const Meeting kMeetings[] = {
    {{24}, {{1}, {1}, {1}}, 24, 24, 24},
    {{2, 3, 4}, {{12, 4, 1}, {12, 4, 1}, {0, 1, 0}}, 24, 24, 3},   // y along the middle axis
    {{5, 7}, {{7, 1}, {1, 0}, {0, 1}}, 35, 5, 7},                  // both repeated
    {{6}, {{1}, {1}, {0}}, 6, 6, 1},                               // one number
    {{3, 2, 2}, {{4, 2, 1}, {1, 3, 6}, {0, 0, 1}}, 12, 12, 2},     // x in another order, y on the last axis
    {{0, 3}, {{3, 1}, {3, 1}, {0, 1}}, 0, 0, 3},                   // nothing meets y
    {{3, 6000}, {{6000, 1}, {6000, 1}, {0, 0}}, 18000, 18000, 1},  // a sum in chunks over elements
    {{700, 5}, {{5, 1}, {5, 1}, {0, 1}}, 3500, 3500, 5},           // a sum in chunks over rows
};

// fn(place in the result, in x, in y), found axis by axis.
template <class Fn> void each_meeting(const Meeting& m, size_t axis, int64_t o, int64_t x, int64_t y, Fn&& fn) {
  if (axis == m.extents.size()) return fn(static_cast<size_t>(o), static_cast<size_t>(x), static_cast<size_t>(y));
  for (int64_t i = 0; i < m.extents[axis]; ++i) {
    each_meeting(m, axis + 1, o + i * m.strides[0][axis], x + i * m.strides[1][axis], y + i * m.strides[2][axis], fn);
  }
}

struct Function {
  const char* name;
  double (*of)(double, double);
  double (*dx)(double x, double y, double out);
  double (*dy)(double x, double y, double out);
};

const Function kFunctions[] = {
    {"add", [](double x, double y) { return x + y; }, [](double, double, double) { return 1.0; },
     [](double, double, double) { return 1.0; }},
    {"sub", [](double x, double y) { return x - y; }, [](double, double, double) { return 1.0; },
     [](double, double, double) { return -1.0; }},
    {"mul", [](double x, double y) { return x * y; }, [](double, double y, double) { return y; },
     [](double x, double, double) { return x; }},
    {"div", [](double x, double y) { return x / y; }, [](double, double y, double) { return 1 / y; },
     [](double, double y, double out) { return -out / y; }},
    {"pow", [](double x, double y) { return std::pow(x, y); },
     [](double x, double y, double) { return y * std::pow(x, y - 1); },
     [](double x, double y, double) { return std::log(x) * std::pow(x, y); }},
    {"max", [](double x, double y) { return std::max(x, y); },
     [](double x, double y, double) { return x > y ? 1.0 : 0; },
     [](double x, double y, double) { return x > y ? 0.0 : 1; }},
    {"min", [](double x, double y) { return std::min(x, y); },
     [](double x, double y, double) { return x < y ? 1.0 : 0; },
     [](double x, double y, double) { return x < y ? 0.0 : 1; }},
};

template <class T> class DeviceBinary : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceBinary, Floats);

TYPED_TEST(DeviceBinary, ValuesAndGradients) {
  using T = TypeParam;
  for (const Meeting& m : kMeetings) {
    const auto xs = held<T>(random_values(m.x, 0.5, 2)), ys = held<T>(random_values(m.y, 0.5, 2, 2));
    const auto ds = held<T>(random_values(m.out, -1, 1, 3));
    for (const Function& f : kFunctions) {
      Array<T> x(xs), y(ys), out(m.out), dout(ds), dx(m.x), dy(m.y);
      const auto axes = axes_of<3>(m.extents, m.strides);
      launch(key_of<T>(std::string("binary/") + f.name), BinaryArgs{x.in(), y.in(), out.out(), axes, {}});
      std::vector<double> value(m.out), of_x(m.x), of_y(m.y), size_x(m.x, 1), size_y(m.y, 1);
      each_meeting(m, 0, 0, 0, 0, [&](size_t o, size_t i, size_t j) { value[o] = f.of(xs[i], ys[j]); });
      expect_all(out, value, f.name, 4);
      each_meeting(m, 0, 0, 0, 0, [&](size_t o, size_t i, size_t j) {
        const double tx = ds[o] * f.dx(xs[i], ys[j], out[o]), ty = ds[o] * f.dy(xs[i], ys[j], out[o]);
        of_x[i] += tx, of_y[j] += ty, size_x[i] += std::abs(tx), size_y[j] += std::abs(ty);
      });
      launch(key_of<T>(std::string("binary_grad/") + f.name),
             BinaryGradArgs{x.in(), y.in(), out.in(), dout.in(), dx.out(), dy.out(), axes, {}});
      for (size_t i = 0; i < m.x; ++i)
        EXPECT_NEAR(dx[i], of_x[i], 4 * rounding<T>() * size_x[i]) << f.name << " x " << i;
      for (size_t i = 0; i < m.y; ++i)
        EXPECT_NEAR(dy[i], of_y[i], 4 * rounding<T>() * size_y[i]) << f.name << " y " << i;
    }
  }
}

// Of an operand that all rows of a matrix had: a thread takes the columns of 16 bytes, or one, in one order.
TYPED_TEST(DeviceBinary, SumsOfColumns) {
  using T = TypeParam;
  constexpr size_t kRows = 2101;
  for (const size_t columns : {128u, 130u}) {
    const size_t n = kRows * columns;
    const auto ds = held<T>(random_values(n, -1, 2));
    std::vector<double> sums(columns), negative(columns);
    for (size_t i = 0; i < n; ++i) sums[i % columns] += ds[i], negative[i % columns] -= ds[i];
    Array<T> dout(ds), apart(n + 1), x(n), y(columns), dy(columns), dy_apart(columns);
    for (size_t i = 0; i < n; ++i) apart.at(i + 1) = dout.at(i);
    const auto wide = static_cast<int64_t>(columns);
    const auto axes = axes_of<3>({kRows, wide}, {{wide, 1}, {wide, 1}, {0, 1}});
    for (const char* name : {"add", "sub"}) {
      BinaryGradArgs a = {x.in(), y.in(), {}, dout.in(), {}, dy.out(), axes, {}};
      launch(key_of<T>(std::string("binary_grad/") + name), a);
      expect_all(dy, *name == 'a' ? sums : negative, name, 4);
      const int64_t packs = sizeof(T) < 8 && columns == 128 ? 16 / static_cast<int64_t>(sizeof(T)) : 1;
      const int64_t chunks = cut_of(wide, kRows, Neighbors::kRows).chunks;
      if (!last_launched().empty()) {
        EXPECT_EQ(last_launched()[0], (Launched{wide / packs * chunks, 1})) << name;
      }
      a.dout = in_from(apart, 1), a.dy = dy_apart.out();
      launch(key_of<T>(std::string("binary_grad/") + name), a);
      expect_same_bits(dy_apart, dy, "where no pack starts");
    }
  }
}

TYPED_TEST(DeviceBinary, ComparisonsKnowNan) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, NAN}), y({2, 2, 2, 2});
  const auto axes = axes_of<3>({4}, {{1}, {1}, {1}});
  const std::vector<std::pair<const char*, std::vector<double>>> expected = {
      {"less_than", {1, 0, 0, 0}},     {"less_equal", {1, 1, 0, 0}}, {"greater_than", {0, 0, 1, 0}},
      {"greater_equal", {0, 1, 1, 0}}, {"equal", {0, 1, 0, 0}},      {"not_equal", {1, 0, 1, 1}}};
  for (const auto& [name, values] : expected) {
    Array<bool> out(4);
    launch(key_of<T>(std::string("compare/") + name), BinaryArgs{x.in(), y.in(), out.out(), axes, {}});
    expect_all(out, values, name);
  }
  Array<bool> answer(1);
  const std::vector<std::pair<const char*, std::array<double, 2>>> questions = {// with the NaN, without
                                                                                {"isnan", {1, 0}},
                                                                                {"isinf", {0, 0}},
                                                                                {"isfinite", {0, 1}}};
  for (const auto& [name, values] : questions) {
    for (size_t k = 0; k < 2; ++k) {
      MapArgs args = {k ? y.in() : x.in(), answer.out(), 4, {std::string(name) == "isfinite" ? 1.0 : 0.0}};
      launch(key_of<T>(std::string("question/") + name), args);
      EXPECT_EQ(answer[0], values[k]) << name << k;
    }
  }
}

TEST(DeviceIntegers, WrapAroundAndReportDivisionsByZero) {
  const auto axes = axes_of<3>({3}, {{1}, {1}, {1}});
  Array<int32_t> x({-2147483648.0, 7, 5}), y({-1, 2, 0}), out(3);
  Array<int64_t> word(1);
  launch("integer_division/div/i32", CheckedBinaryArgs{{x.in(), y.in(), out.out(), axes, {}}, sink_of(word)});
  EXPECT_EQ(out.values(), (std::vector<double>{-2147483648.0, 3, 0}));
  ASSERT_TRUE(faulted(word));
  EXPECT_EQ(fault_of(word).node, 7u);
  EXPECT_EQ(fault_of(word).code, 1u);
  EXPECT_EQ(fault_of(word).detail, 2);
  launch("integer_division/mod/i32", CheckedBinaryArgs{{x.in(), y.in(), out.out(), axes, {}}, {}});
  EXPECT_EQ(out.values(), (std::vector<double>{0, 1, 0}));
  Array<int32_t> large({2147483647, 2, 3});
  launch("binary/add/i32", BinaryArgs{large.in(), large.in(), out.out(), axes, {}});
  EXPECT_EQ(out.values(), (std::vector<double>{-2, 4, 6}));
}

TYPED_TEST(DeviceBinary, NumbersInArgsOrInTensors) {
  using T = TypeParam;
  const auto xs = held<T>({-3, -0.5, 0, 0.5, 3});
  Array<T> x(xs), y(5), number(std::vector<double>{2}), low(std::vector<double>{-1}), high(std::vector<double>{1});
  const auto with = [&](const char* key, double a, double b, int32_t flags, DeviceIn given,
                        std::vector<double> expected) {
    launch(key_of<T>(key), ScalarArgs{x.in(), {}, given, {}, y.out(), 5, {a, b}, {}, flags, 0});
    expect_all(y, expected, key, 2);
  };
  with("scalar/scale", 3, 1, 1, {}, {-8, -0.5, 1, 2.5, 10});
  with("scalar/scale", 3, 1, 0, {}, {-6, 1.5, 3, 4.5, 12});
  with("scalar/scale", 3, 0, 1, number.in(), {-6, -1, 0, 1, 6});
  with("scalar/pow", 3, 0, 0, number.in(), {9, 0.25, 0, 0.25, 9});
  with("scalar/sign", 0, 0, 0, {}, {-1, -1, 0, 1, 1});
  with("scalar/clip", -0.5, 2, 0, {}, {-0.5, -0.5, 0, 0.5, 2});
  ScalarArgs bounds = {x.in(), x.in(), {}, {low.in(), high.in()}, y.out(), 5, {}, {}, 0, 0};
  launch(key_of<T>("scalar/clip"), bounds);
  expect_all(y, {-1, -0.5, 0, 0.5, 1}, "clip by tensors");
  launch(key_of<T>("scalar/clip_grad"), bounds);
  expect_all(y, {0, -0.5, 0, 0.5, 0}, "clip_grad");
  Array<T> a({1, 2, 3}), b({10, 20, 30}), c({100, 200, 300});
  SumArgs sum = {{a.in(), b.in(), c.in()}, b.out(), 3, 3, 0};
  launch(key_of<T>("sum"), sum);
  expect_all(b, {111, 222, 333}, "sum into an operand");
}

template <class T> class DeviceSums : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceSums, Floats);

// By eights of 16 bits where there are many and all begin where packs do: the same sums, also where one takes them.
TYPED_TEST(DeviceSums, OfManyElements) {
  using T = TypeParam;
  for (const int32_t count : {3, 4, 5, 9}) {
    const size_t n = static_cast<size_t>(kManyElements) + 8;
    Array<T> y(n), apart(n + 1);
    std::vector<std::unique_ptr<Array<T>>> x;
    SumArgs a = {{}, y.out(), static_cast<int64_t>(n), count, 0};
    for (uint32_t k = 0; k < static_cast<uint32_t>(count); ++k) {
      x.push_back(std::make_unique<Array<T>>(random_values(n, -1, 2, k)));
      a.x[k] = x.back()->in();
    }
    launch(key_of<T>("sum"), a);
    const bool packs = sizeof(T) == 2;
    for (const Launched& l : last_launched()) EXPECT_EQ(l.rows, static_cast<int64_t>(packs ? n / 8 : n)) << count;
    for (size_t i = 0; i < n; i += 997) {
      Compute<T> sum = load(x[0]->at(i));
      for (size_t k = 1; k < x.size(); ++k) sum += load(x[k]->at(i));
      EXPECT_EQ(y[i], Array<T>::number(static_cast<T>(sum))) << count << " at " << i;
    }
    a.y = out_from(apart, 1);
    launch(key_of<T>("sum"), a);
    for (const Launched& l : last_launched()) EXPECT_EQ(l.rows, static_cast<int64_t>(n));
    expect_same_bits(apart, y, "where no pack starts", 1);
    a.y = x[2]->out();
    launch(key_of<T>("sum"), a);
    expect_same_bits(*x[2], y, "into an operand");
  }
}

TEST(DeviceCast, BetweenAllTypes) {
  Array<float> x({-2.7, 0, 3.9, 1e20, NAN, 300});
  Array<int32_t> whole(6);
  launch("cast/f32/i32", MapArgs{x.in(), whole.out(), 6, {}});
  EXPECT_EQ(whole.values(), (std::vector<double>{-2, 0, 3, -2147483648.0, -2147483648.0, 300}));
  Array<bool> truth(6);
  launch("cast/f32/bool", MapArgs{x.in(), truth.out(), 6, {}});
  EXPECT_EQ(truth.values(), (std::vector<double>{1, 0, 1, 1, 1, 1}));
  Array<half> narrow(6);
  launch("cast/f32/f16", MapArgs{x.in(), narrow.out(), 6, {}});
  expect_all(narrow, {-2.7, 0, 3.9, INFINITY, NAN, 300}, "to half");
  Array<uint8_t> low(6);
  launch("cast/i32/u8", MapArgs{whole.in(), low.out(), 6, {}});
  EXPECT_EQ(low[5], 300 % 256);
  Array<bool> y({0, 1, 0, 1, 1, 1}), out(6);
  launch("logical/xor/bool", BinaryArgs{truth.in(), y.in(), out.out(), axes_of<3>({6}, {{1}, {1}, {1}}), {}});
  EXPECT_EQ(out.values(), (std::vector<double>{1, 1, 1, 0, 0, 0}));
  launch("logical/not/bool", MapArgs{truth.in(), out.out(), 6, {}});
  EXPECT_EQ(out.values(), (std::vector<double>{0, 1, 0, 0, 0, 0}));
}

template <class From, class To> void check_many_casts() {
  constexpr int64_t kMany = kManyElements;
  const Array<From> x(held<From>(random_values(kMany + 1, -70000, 70000)));
  Array<To> together(kMany), apart(kMany + 1);
  const std::string key = std::string("cast/") + type_name<From> + "/" + type_name<To>;
  launch(key, MapArgs{x.in(), together.out(), kMany, {}});
  expect_threads(kMany / 8, key);
  launch(key, MapArgs{x.in(), apart.out(), kMany + 1, {}});
  expect_threads(kMany + 1, key);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(together[i], apart[i]) << key << " at " << i;
}

TEST(DeviceCast, ManyNumbersBetweenFloatsOf16And32BitsGoByEights) {
  check_many_casts<float, half>();
  check_many_casts<float, bfloat16>();
  check_many_casts<half, float>();
  check_many_casts<bfloat16, float>();
}

}  // namespace
}  // namespace anabranch::device
