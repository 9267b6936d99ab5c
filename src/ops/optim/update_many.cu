// One update rule over many parameters in one launch, on devices: "update_many/<rule>", "next_powers_many".
#include "ops/optim/device_rules.h"

namespace anabranch::device {

template <template <class> class Rule> struct UpdateMany {
  using Args = UpdateManyArgs;
  template <class T> struct Body {
    const UpdateArgs* table;
    const int64_t* starts;
    int64_t count;
    template <class L> AB_HD void operator()(const L& lanes, int64_t chunk) const {
      int64_t from = 0, to = count;  // the last parameter that begins at this chunk or before it
      while (to - from > 1) {
        const int64_t middle = (from + to) / 2;
        if (starts[middle] <= chunk)
          from = middle;
        else
          to = middle;
      }
      const UpdateArgs& own = table[from];
      const Rule<T> rule(own);
      const T* grad = own.grad.template get<T>();
      const int64_t first = (chunk - starts[from]) * kUpdateChunk;
      const int64_t last = first + kUpdateChunk < own.n ? first + kUpdateChunk : own.n;
      if constexpr (requires { rule.step(); }) {
        const auto step = rule.step();
        for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) rule(i, grad[i], step);
      } else {
        for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) rule(i, grad[i]);
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.chunks, kUpdateChunk, Body<T>{a.table.get<UpdateArgs>(), a.starts.get<int64_t>(), a.count});
  }
};

struct NextPowersMany {
  using Args = UpdateManyArgs;
  template <class T> struct Body {
    const UpdateArgs* table;
    AB_HD void operator()(int64_t i) const {
      const UpdateArgs& a = table[i / 2];
      const int k = static_cast<int>(i % 2);
      NextPower<T>(a, k, a.state[2 + k]).move();
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, 2 * a.count, Body<T>{a.table.get<UpdateArgs>()});
  }
};

AB_KERNEL("update_many/sgd", UpdateMany<SgdRule>, float, double);
AB_KERNEL("update_many/momentum", UpdateMany<MomentumRule>, float, double);
AB_KERNEL("update_many/nesterov", UpdateMany<NesterovRule>, float, double);
AB_KERNEL("update_many/adam", UpdateMany<AdamRule>, float, double);
AB_KERNEL("next_powers_many", NextPowersMany, float, double);

}  // namespace anabranch::device
