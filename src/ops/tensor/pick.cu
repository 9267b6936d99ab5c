// Gathers rows and elements by ids on devices: "gather/<bytes>/<id>" (also lookups), "positions/<id>" of gather_nd,
// "pick/<bytes>/<id>", "multiplex/<bytes>/<id>", with gradients; "shard_index/<id>".
#include "ops/device/args_index.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

// y[i] = row ids[i] of x.
struct Gather {
  using Args = IndexArgs;
  template <class T, class Id> struct Body {
    const T* x;
    const Id* ids;
    T* y;
    FaultReport report;
    int64_t height, width, padding;
    bool pads, reports_ids;
    AB_HD void operator()(int64_t i) const {
      const int64_t place = i / width, column = i % width, id = ids[place];
      const bool inside = id >= 0 && id < height, zeros = pads && id == padding;
      if (!inside && !zeros && column == 0) report(1, reports_ids ? id : place);
      y[i] = inside && !zeros ? x[id * width + column] : T(0);
    }
  };
  template <class T, class Id> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.ids_count * a.width,
                Body<T, Id>{a.x.get<T>(), a.ids.get<Id>(), a.y.get<T>(), FaultReport(a.fault), a.height, a.width,
                            a.padding, (a.flags & kHasPadding) != 0, (a.flags & kReportsIds) != 0});
  }
};

struct Positions {
  using Args = PositionsArgs;
  template <class Id> struct Body {
    const Id* ids;
    int64_t* y;
    FaultReport report;
    int64_t extent[kMaxAxes];
    int32_t depth;
    AB_HD void operator()(int64_t i) const {
      int64_t at = 0;
      for (int k = 0; k < depth; ++k) {
        int64_t id = ids[i * depth + k];
        if (id < 0 || id >= extent[k]) {
          report(1, i * depth + k);
          id = 0;
        }
        at = at * extent[k] + id;
      }
      y[i] = at;
    }
  };
  template <class Id> static int run(const Launch& launch, const Args& a) {
    Body<Id> body{a.ids.get<Id>(), a.y.get<int64_t>(), FaultReport(a.fault), {}, a.depth};
    for (int k = 0; k < a.depth; ++k) body.extent[k] = a.extent[k];
    return each(launch, a.n, body);
  }
};

struct Picking {
  int64_t extent, inner, places;
  bool own;  // different places in each row
  explicit Picking(const PickArgs& a) : extent(a.extent), inner(a.inner), places(a.places), own((a.flags & 1) != 0) {}
  AB_HD int64_t id_at(int64_t row, int64_t place) const { return own ? row * places + place : place; }
};

struct Pick {
  using Args = PickArgs;
  template <class T, class Id> struct Body {
    Picking picking;
    const T* x;
    const Id* ids;
    T* y;
    FaultReport report;
    AB_HD void operator()(int64_t i) const {
      const Picking& p = picking;
      const int64_t row = i / p.inner / p.places, at = p.id_at(row, i / p.inner % p.places), id = ids[at];
      const bool inside = id >= 0 && id < p.extent;
      if (!inside && i % p.inner == 0) report(1, at);
      y[i] = inside ? x[(row * p.extent + id) * p.inner + i % p.inner] : T(0);
    }
  };
  template <class T, class Id> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.places * a.inner,
                Body<T, Id>{Picking(a), a.x.get<T>(), a.ids.get<Id>(), a.y.get<T>(), FaultReport(a.fault)});
  }
};

// Every element of y, [outer, extent, inner], searches for the places that select it.
struct PickGrad {
  using Args = PickArgs;
  template <class T, class Id> struct Body {
    Picking picking;
    const T* dout;
    const Id* ids;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const Picking& p = picking;
      const int64_t row = i / p.inner / p.extent, own = i / p.inner % p.extent, column = i % p.inner;
      Compute<T> sum = 0;
      for (int64_t place = 0; place < p.places; ++place) {
        if (ids[p.id_at(row, place)] == own) sum += load(dout[(row * p.places + place) * p.inner + column]);
      }
      store(dx + i, sum);
    }
  };
  template <class T, class Id> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.extent * a.inner,
                Body<T, Id>{Picking(a), a.x.get<T>(), a.ids.get<Id>(), a.y.get<T>()});
  }
};

template <bool kGradient> struct Multiplex {  // for the gradient: x[0] is Out@GRAD
  using Args = MultiplexArgs;
  template <class T, class Id> struct Body {
    const T* x[kMostCandidates];
    const Id* ids;
    T* y;
    FaultReport report;
    int64_t width;
    int32_t count, own;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, id = ids[row];
      if (kGradient) {
        y[i] = id == own ? x[0][i] : T(0);
        return;
      }
      const bool inside = id >= 0 && id < count;
      if (!inside && i % width == 0) report(1, row);
      y[i] = x[inside ? id : 0][i];
    }
  };
  template <class T, class Id> static int run(const Launch& launch, const Args& a) {
    Body<T, Id> body{{}, a.ids.get<Id>(), a.y.get<T>(), FaultReport(a.fault), a.width, a.count, a.own};
    for (int k = 0; k < (kGradient ? 1 : a.count); ++k) body.x[k] = a.x[k].get<T>();
    return each(launch, a.rows * a.width, body);
  }
};

struct ShardIndex {
  using Args = ShardIndexArgs;
  template <class Id> struct Body {
    const Id* x;
    Id* y;
    FaultReport report;
    int64_t ids, size, part, other;
    AB_HD void operator()(int64_t i) const {
      const int64_t id = x[i];
      if (id < 0 || id >= ids) report(1, i);
      y[i] = static_cast<Id>(id / size == part ? id % size : other);
    }
  };
  template <class Id> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n,
                Body<Id>{a.x.get<Id>(), a.y.get<Id>(), FaultReport(a.fault), a.ids, a.size, a.part, a.other});
  }
};

#define AB_BY_IDS(T) Types<T, int32_t>, Types<T, int64_t>
#define AB_SIZES_BY_IDS AB_BY_IDS(uint8_t), AB_BY_IDS(int16_t), AB_BY_IDS(int32_t), AB_BY_IDS(int64_t)

AB_KERNEL("gather", Gather, AB_SIZES_BY_IDS);
AB_KERNEL("positions", Positions, int32_t, int64_t);
AB_KERNEL("pick", Pick, AB_SIZES_BY_IDS);
AB_KERNEL("pick_grad", PickGrad, AB_BY_IDS(float), AB_BY_IDS(double), AB_BY_IDS(half), AB_BY_IDS(bfloat16));
AB_KERNEL("multiplex", Multiplex<false>, AB_SIZES_BY_IDS);
AB_KERNEL("multiplex_grad", Multiplex<true>, AB_SIZES_BY_IDS);
AB_KERNEL("shard_index", ShardIndex, int32_t, int64_t);

}  // namespace anabranch::device
