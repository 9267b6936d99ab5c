// Kernels with the defects that only many lanes show, for tests of the simulated device: right where flags have kRight.
#include <stdexcept>

#include "ops/device/kernels.h"

namespace anabranch::device {

inline constexpr int32_t kRight = 1;

// y[0] = x, and then y[1] = the next element of y[0], which another lane has written.
struct Unsynced {
  using Args = RowArgs;
  template <class T> struct Body {
    const T* x;
    T *between, *y;
    int64_t width;
    bool right;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      T* own = between + row * width;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) own[i] = x[row * width + i];
      if (right) lanes.sync();
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) y[row * width + i] = own[(i + 1) % width];
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width,
                Body<T>{a.x[0].get<T>(), a.y[0].get<T>(), a.y[1].get<T>(), a.width, a.flags == kRight});
  }
};
AB_KERNEL("test/unsynced", Unsynced, float);

// y[row] += the sum of row.
struct Unguarded {
  using Args = RowArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t width;
    bool right;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      T sum = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) sum += x[row * width + i];
      sum = lanes.sum(sum);
      if (!right || lanes.index() == 0) y[row] += sum;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width, Body<T>{a.x[0].get<T>(), a.y[0].get<T>(), a.width, a.flags == kRight});
  }
};
AB_KERNEL("test/unguarded", Unguarded, float);

// Lanes that do not meet: lane 3 has ended (2), calls something else (3), calls the same elsewhere (4), comes once more
// (5), throws (6). y[row] = the number of lanes.
struct Divergent {
  using Args = RowArgs;
  template <class T> struct Body {
    T* y;
    int32_t how;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const bool own = lanes.index() == 3;
      T count = 0;
      if (how == 2 && own) return;
      if (how == 6 && own) throw std::runtime_error("lane 3 throws");
      if (how == 3 && own) {
        count = lanes.max(T(1));
      } else if (how == 4 && own) {
        count = lanes.sum(T(1));
      } else {
        count = lanes.sum(T(1));
      }
      if (how == 5 && own) lanes.sync();
      if (lanes.index() == 0) y[row] = count;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width, Body<T>{a.y[0].get<T>(), a.flags});
  }
};
AB_KERNEL("test/divergent", Divergent, float);

// y = the running sum of x, each element by the one before it.
struct Ordered {
  using Args = MapArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    AB_HD void operator()(int64_t i) const { y[i] = i ? y[i - 1] + x[i] : x[i]; }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.x.get<T>(), a.y.get<T>()});
  }
};
AB_KERNEL("test/ordered", Ordered, float);

// y[i % p[0]] += x[i]; with p[1], the elements of a row are its lanes.
struct Scattered {
  using Args = MapArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t places;
    AB_HD void operator()(int64_t i) const { y[i % places] += x[i]; }
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      (*this)(row * lanes.count() + lanes.index());
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Body<T> body{a.x.get<T>(), a.y.get<T>(), static_cast<int64_t>(a.p[0])};
    return a.p[1] != 0 ? rows(launch, a.n / 32, 32, body) : each(launch, a.n, body);
  }
};
AB_KERNEL("test/scattered", Scattered, float);

// Of lane i of each row, which brings x[i]: its sum, its scan, the scan's total, the largest, whether any is above 0.
struct Collectives {
  using Args = RowArgs;
  template <class T> struct Body {
    const T* x;
    T *y, *order;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      T* to = y + (row * lanes.count() + lanes.index()) * 5;
      const T own = x[row * lanes.count() + lanes.index()];
      to[0] = lanes.sum(own);
      to[1] = lanes.scan(own, to + 2);
      to[3] = lanes.max(own);
      to[4] = lanes.any(own > 0) ? T(1) : T(0);
      if (order) order[static_cast<int64_t>(order[0]++)] = static_cast<T>(row * lanes.count() + lanes.index());
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width, Body<T>{a.x[0].get<T>(), a.y[0].get<T>(), a.y[1].get<T>()});
  }
};
AB_KERNEL("test/collectives", Collectives, float);

}  // namespace anabranch::device
