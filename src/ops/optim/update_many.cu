// One update rule over many parameters in one launch, on devices: "update_many/<rule>", "next_powers_many". Adjacent
// elements are read and written 16 bytes at once if a parameter, its state and its gradient are aligned; tails and
// other parameters one by one. The bits are the same.
#include "ops/device/pack.h"
#include "ops/optim/device_rules.h"

namespace anabranch::device {

// One of the parameters, with a gradient of G.
template <class Rule, class T, class G> struct OneOfMany {
  static constexpr int kCount = 16 / sizeof(T);
  static_assert(kUpdateChunk % kCount == 0);  // so that a chunk is aligned if its parameter is
  using Values = Pack<T, kCount>;
  using Grads = Pack<G, kCount>;

  Rule rule;
  const G* grad;
  bool divided;
  T scale;
  AB_HD explicit OneOfMany(const UpdateManyEntry& own)
      : rule(own.update),
        grad(own.update.grad.template get<G>()),
        divided(own.scale.there()),
        scale(divided ? *own.scale.template get<T>() : T(1)) {}

  // The elements of a chunk, from `first` up to `last`.
  template <class L> AB_HD void update(const L& lanes, int64_t first, int64_t last) const {
    const auto step = step_of(rule);
    if (starts_packs()) {
      const int64_t packs = last / kCount;
      for (int64_t k = first / kCount + lanes.index(); k < packs; k += lanes.count()) update_pack(k, step);
      first = packs * kCount;
    }
    for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) update_one(rule, i, grad[i], step);
  }

 private:
  struct NoStep {};  // for rules without values shared by all elements
  AB_HD static auto step_of(const Rule& rule) {
    if constexpr (requires { rule.step(); })
      return rule.step();
    else
      return NoStep();
  }

  template <class Step> AB_HD void update_one(const Rule& own, int64_t i, const G& g, const Step& step) const {
    const T wide = load(g), value = divided ? wide / scale : wide;
    if constexpr (std::is_same_v<Step, NoStep>)
      own(i, value);
    else
      own(i, value, step);
  }

  AB_HD bool starts_packs() const {
    bool all = packed<Values>(rule.p) && packed<Grads>(grad);
    for (int s = 0; s < Rule::kStates; ++s) all = all && packed<Values>(rule.state[s]);
    return all;
  }

  // The rule works on local values, which are in registers.
  template <class Step> AB_HD void update_pack(int64_t k, const Step& step) const {
    const Grads grads = reinterpret_cast<const Grads*>(grad)[k];
    Values held[1 + Rule::kStates];
    Rule own = rule;
    held[0] = reinterpret_cast<const Values*>(rule.p)[k];
    own.p = held[0].at;
    for (int s = 0; s < Rule::kStates; ++s) {
      held[1 + s] = reinterpret_cast<const Values*>(rule.state[s])[k];
      own.state[s] = held[1 + s].at;
    }
    for (int e = 0; e < kCount; ++e) update_one(own, e, grads.at[e], step);
    reinterpret_cast<Values*>(rule.p)[k] = held[0];
    for (int s = 0; s < Rule::kStates; ++s) reinterpret_cast<Values*>(rule.state[s])[k] = held[1 + s];
  }
};

template <template <class> class Rule> struct UpdateMany {
  using Args = UpdateManyArgs;
  template <class T> struct Body {
    const UpdateManyEntry* table;
    const int64_t* starts;
    int64_t count;
    template <class L> AB_HD void operator()(const L& lanes, int64_t chunk) const {
      int64_t from = 0, to = count;  // the last parameter that starts at this chunk or before it
      while (to - from > 1) {
        const int64_t middle = (from + to) / 2;
        if (starts[middle] <= chunk)
          from = middle;
        else
          to = middle;
      }
      const UpdateManyEntry& own = table[from];
      const int64_t first = (chunk - starts[from]) * kUpdateChunk, n = own.update.n;
      const int64_t last = first + kUpdateChunk < n ? first + kUpdateChunk : n;
      if constexpr (std::is_same_v<T, float>) {
        const int32_t flags = own.update.flags;
        if (flags & kHalfGrad) return OneOfMany<Rule<T>, T, half>(own).update(lanes, first, last);
        if (flags & kBfloat16Grad) return OneOfMany<Rule<T>, T, bfloat16>(own).update(lanes, first, last);
      }
      OneOfMany<Rule<T>, T, T>(own).update(lanes, first, last);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.chunks, kUpdateChunk,
                Body<T>{a.table.get<UpdateManyEntry>(), a.starts.get<int64_t>(), a.count});
  }
};

struct NextPowersMany {
  using Args = UpdateManyArgs;
  template <class T> struct Body {
    const UpdateManyEntry* table;
    AB_HD void operator()(int64_t i) const {
      const UpdateArgs& a = table[i / 2].update;
      const int k = static_cast<int>(i % 2);
      NextPower<T>(a, k, a.state[2 + k]).move();
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, 2 * a.count, Body<T>{a.table.get<UpdateManyEntry>()});
  }
};

AB_KERNEL("update_many/sgd", UpdateMany<SgdRule>, float, double);
AB_KERNEL("update_many/momentum", UpdateMany<MomentumRule>, float, double);
AB_KERNEL("update_many/nesterov", UpdateMany<NesterovRule>, float, double);
AB_KERNEL("update_many/adam", UpdateMany<AdamRule>, float, double);
AB_KERNEL("next_powers_many", NextPowersMany, float, double);

}  // namespace anabranch::device
