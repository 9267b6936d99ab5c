// The first elements of lines in some order, on devices: "top_k", "argsort", "selected_grad". NaN sorts last, ties by
// index.
#include <limits>

#include "ops/device/args_rows.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

template <class C> struct Placed {
  C value;
  int64_t place;
};

// Whether a sorts before b.
template <class C> AB_HD bool before(const Placed<C>& a, const Placed<C>& b, bool descending) {
  const bool a_number = a.value == a.value, b_number = b.value == b.value;
  if (a_number != b_number) return a_number;
  if (a_number && a.value != b.value) return descending ? a.value > b.value : a.value < b.value;
  return a.place < b.place;
}

struct OrderLine {
  int64_t extent, inner;
  AB_HD int64_t at(int64_t line, int64_t i) const { return (line / inner * extent + i) * inner + line % inner; }
};

// Finds the k numbers one per round, each the first in order after the previous one. Suits a small k.
struct TopK {
  using Args = OrderArgs;
  template <class T> struct Body {
    using C = Compute<T>;
    OrderLine from, to;
    const T* x;
    T* y;
    int64_t* places;
    bool descending;
    // The first number after `last` among this lane's; its place is the extent if there is none.
    template <class L> AB_HD Placed<C> next(const L& lanes, int64_t line, const Placed<C>& last) const {
      Placed<C> best{C(0), from.extent};
      for (int64_t i = lanes.index(); i < from.extent; i += lanes.count()) {
        const Placed<C> own{load(x[from.at(line, i)]), i};
        if (last.place >= 0 && !before(last, own, descending)) continue;
        if (best.place == from.extent || before(own, best, descending)) best = own;
      }
      return best;
    }
    template <class L> AB_HD void operator()(const L& lanes, int64_t line) const {
      Placed<C> last{C(0), -1};
      for (int64_t k = 0; k < to.extent; ++k) {
        const Placed<C> mine = next(lanes, line, last);
        const bool there = mine.place < from.extent;
        // Numbers of all lanes first; if no lane has one, places of NaN.
        const bool number = there && mine.value == mine.value, any = lanes.any(number);
        const C best = any ? best_of(lanes, number, mine.value) : C(0);
        const bool holds = any ? number && mine.value == best : there;
        last.place = lanes.min(holds ? mine.place : from.extent);
        last.value = load(x[from.at(line, last.place)]);
        if (lanes.index() != 0) continue;
        y[to.at(line, k)] = x[from.at(line, last.place)];
        places[to.at(line, k)] = last.place;
      }
    }
    template <class L> AB_HD C best_of(const L& lanes, bool number, C value) const {
      return descending ? lanes.max(number ? value : least()) : lanes.min(number ? value : largest());
    }
    AB_HD static C largest() {
      return std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
    }
    AB_HD static C least() {
      return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                  : std::numeric_limits<C>::lowest();
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.extent,
                Body<T>{{a.extent, a.inner},
                        {a.k, a.inner},
                        a.x.get<T>(),
                        a.y.get<T>(),
                        a.places.get<int64_t>(),
                        (a.flags & 1) != 0});
  }
};

// Every element counts those that sort before it.
struct ArgSort {
  using Args = OrderArgs;
  template <class T> struct Body {
    OrderLine line;
    const T* x;
    T* y;
    int64_t* places;
    bool descending;
    AB_HD void operator()(int64_t at) const {
      const int64_t own_line = at / line.inner / line.extent * line.inner + at % line.inner;
      const Placed<Compute<T>> own{load(x[at]), at / line.inner % line.extent};
      int64_t rank = 0;
      for (int64_t i = 0; i < line.extent; ++i) {
        rank += before(Placed<Compute<T>>{load(x[line.at(own_line, i)]), i}, own, descending);
      }
      y[line.at(own_line, rank)] = x[at];
      places[line.at(own_line, rank)] = own.place;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.extent * a.inner,
                Body<T>{{a.extent, a.inner}, a.x.get<T>(), a.y.get<T>(), a.places.get<int64_t>(), (a.flags & 1) != 0});
  }
};

// y, [outer, extent, inner], gets the gradients x of the k selected elements at their sources.
struct SelectedGrad {
  using Args = OrderArgs;
  template <class T> struct Body {
    OrderLine line, selected;
    const T* dout;
    const int64_t* places;
    T* dx;
    FaultReport report;
    AB_HD void operator()(int64_t own) const {
      for (int64_t i = 0; i < line.extent; ++i) dx[line.at(own, i)] = static_cast<T>(Compute<T>(0));
      for (int64_t k = 0; k < selected.extent; ++k) {
        const int64_t from = selected.at(own, k), place = places[from];
        if (place < 0 || place >= line.extent) {
          report(1, place);
          continue;
        }
        T* to = dx + line.at(own, place);
        store(to, load(*to) + load(dout[from]));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.inner,
                Body<T>{{a.extent, a.inner},
                        {a.k, a.inner},
                        a.x.get<T>(),
                        a.places_in.get<int64_t>(),
                        a.y.get<T>(),
                        FaultReport(a.fault)});
  }
};

AB_KERNEL("top_k", TopK, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("argsort", ArgSort, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("selected_grad", SelectedGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
