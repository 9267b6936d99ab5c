// Update rules on devices, for dense gradients ("update/<rule>") and sparse ones ("update_touched/<rule>",
// "update_rows/<rule>").
#include "ops/device/groups.h"
#include "ops/optim/device_rules.h"

namespace anabranch::device {

template <template <class> class Rule> struct Update {
  using Args = UpdateArgs;
  template <class T> struct Body {
    Rule<T> rule;
    const T* grad;
    AB_HD void operator()(int64_t i) const { rule(i, grad[i]); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{Rule<T>(a), a.grad.get<T>()});
  }
};

template <template <class> class Rule> struct UpdateTouched {
  using Args = UpdateRowsArgs;
  template <class T> struct Body {
    Rule<T> rule;
    Groups groups;
    const T* values;
    int64_t width;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / width, j = i % width;
      if (k >= *groups.count || groups.is_long(k)) return;
      rule(groups.rows[k] * width + j, groups.sum(values, k, j, width));
    }
  };
  template <class T> struct Long {  // a row with very many values
    Rule<T> rule;
    Groups groups;
    const T* values;
    int64_t width;
    template <class L> AB_HD void operator()(const L& lanes, int64_t n) const {
      const int64_t k = groups.long_group(n);
      if (k < 0) return;
      for (int64_t j = 0; j < width; ++j) {
        const T total = groups.sum(lanes, values, k, j, width);
        if (lanes.index() == 0) rule(groups.rows[k] * width + j, total);
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const UpdateArgs& u = a.update;
    const Rule<T> rule(u);
    const Groups groups(a.groups);
    const T* values = u.grad.get<T>();
    if (const int failed = each(launch, a.ids * a.width, Body<T>{rule, groups, values, a.width})) return failed;
    if (a.ids <= Groups::kLong) return 0;
    return rows(launch, Groups::long_groups(a.ids), 8 * Groups::kLong, Long<T>{rule, groups, values, a.width});
  }
};

template <template <class> class Rule> struct UpdateRows {
  using Args = UpdateRowsArgs;
  template <class T> struct Body {
    Rule<T> rule;
    Groups groups;
    const T* values;
    int64_t width;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = groups.find(i / width);
      rule(i, k < 0 ? T(0) : groups.sum(values, k, i % width, width));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const UpdateArgs& u = a.update;
    return each(launch, a.height * a.width, Body<T>{Rule<T>(u), Groups(a.groups), u.grad.get<T>(), a.width});
  }
};

template <template <class> class Rule> bool add_rule(const char* dense, const char* touched, const char* rows) {
  return add_kernels<Update<Rule>, float, double>(dense) && add_kernels<UpdateTouched<Rule>, float, double>(touched) &&
         add_kernels<UpdateRows<Rule>, float, double>(rows);
}

#define AB_RULE(name, Rule) add_rule<Rule>("update/" name, "update_touched/" name, "update_rows/" name)

[[maybe_unused]] static const bool rules_added =
    AB_RULE("sgd", SgdRule) && AB_RULE("momentum", MomentumRule) && AB_RULE("nesterov", NesterovRule) &&
    AB_RULE("adagrad", AdagradRule) && AB_RULE("adadelta", AdadeltaRule) && AB_RULE("adam", AdamRule) &&
    AB_RULE("adamax", AdamaxRule) && AB_RULE("rmsprop", RmsPropRule) && AB_RULE("ftrl", FtrlRule);

// "next_powers": state[0] = reads[0] beta1, state[1] = reads[1] beta2. After the update.
struct NextPowers {
  using Args = UpdateArgs;
  template <class T> struct Body {
    NextPower<T> powers[2];
    AB_HD void operator()(int64_t i) const { powers[i].move(); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, 2, Body<T>{{NextPower<T>(a, 0, a.state[0]), NextPower<T>(a, 1, a.state[1])}});
  }
};

AB_KERNEL("next_powers", NextPowers, float, double);

}  // namespace anabranch::device
