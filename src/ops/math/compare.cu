// Comparisons and logic on devices: "compare/<op>" with broadcasting, "logical/<op>", and predicates "question/<op>"
// over a whole tensor.
#include <functional>

#include "ops/device/fold_rows.h"
#include "ops/device/walk.h"
#include "ops/math/element_functions.h"

namespace anabranch::device {

template <class F> struct Compare {
  using Args = BinaryArgs;
  template <class T> struct Body {
    Walk<3> walk;
    const T *x, *y;
    bool* out;
    AB_HD void operator()(int64_t i) const {
      int64_t at[3];
      walk.at(i, at);
      out[at[0]] = F{}(load(x[at[1]]), load(y[at[2]]));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Walk<3> walk(a.axes);
    return each(launch, walk.count(), Body<T>{walk, a.x.get<T>(), a.y.get<T>(), a.out.get<bool>()});
  }
};

struct LogicalNot {
  using Args = MapArgs;
  struct Body {
    const bool* x;
    bool* y;
    AB_HD void operator()(int64_t i) const { y[i] = !x[i]; }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body{a.x.get<T>(), a.y.get<T>()});
  }
};

// y[0] = whether F::of(x[i]) is true for any i, or, with p[0] = 1, for none. For integers it is never true.
template <class F> struct Question {
  using Args = MapArgs;
  template <class T> struct Body {
    using Wide = int32_t;
    const T* x;
    bool* y;
    bool none;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a | b; }
    AB_HD Wide at(int64_t, int64_t i) const {
      if constexpr (std::is_integral_v<T>)
        return 0;
      else
        return F::of(load(x[i]));
    }
    AB_HD void put(int64_t, Wide found) const { y[0] = (found != 0) != none; }
  };
  template <class T> static size_t room(const Args& a) { return fold_room<int32_t>(1, a.n, Neighbors::kElements); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    return fold_rows(launch, 1, a.n, Neighbors::kElements, Body<T>{a.x.get<T>(), a.y.get<bool>(), a.p[0] != 0},
                     launch.workspace.get<int32_t>());
  }
};

struct And {
  AB_HD bool operator()(bool a, bool b) const { return a && b; }
};
struct Or {
  AB_HD bool operator()(bool a, bool b) const { return a || b; }
};
struct Xor {
  AB_HD bool operator()(bool a, bool b) const { return a != b; }
};

AB_KERNEL("compare/less_than", Compare<std::less<>>, float, double, half, bfloat16, int32_t, int64_t, bool);
AB_KERNEL("compare/less_equal", Compare<std::less_equal<>>, float, double, half, bfloat16, int32_t, int64_t, bool);
AB_KERNEL("compare/greater_than", Compare<std::greater<>>, float, double, half, bfloat16, int32_t, int64_t, bool);
AB_KERNEL("compare/greater_equal", Compare<std::greater_equal<>>, float, double, half, bfloat16, int32_t, int64_t,
          bool);
AB_KERNEL("compare/equal", Compare<std::equal_to<>>, float, double, half, bfloat16, int32_t, int64_t, bool);
AB_KERNEL("compare/not_equal", Compare<std::not_equal_to<>>, float, double, half, bfloat16, int32_t, int64_t, bool);
AB_KERNEL("logical/and", Compare<And>, bool);
AB_KERNEL("logical/or", Compare<Or>, bool);
AB_KERNEL("logical/xor", Compare<Xor>, bool);
AB_KERNEL("logical/not", LogicalNot, bool);
AB_KERNEL("question/isfinite", Question<math::NotFinite>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("question/isinf", Question<math::Infinite>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("question/isnan", Question<math::NoNumber>, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
