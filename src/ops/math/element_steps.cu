// fused_elementwise on devices: "element_steps". Each lane applies all steps to one element, or to several of a large
// tensor, reading the steps from a table; it uses the functions of the ops' kernels, so results have the same bits.
#include "ops/math/step_result.h"

namespace anabranch::math {

struct ElementSteps {
  using Args = device::ElementStepsArgs;
  // If a tensor keeps all lanes of a GPU busy, each lane has several elements and reads a step once for all of them.
  static constexpr int kSeveral = 4;

  template <class T> struct Input {
    const T* x;
    int64_t repeat, period;
    AB_HD float at(int64_t i, bool narrow) const {
      if (period == 0) return device::load(x[i]);
      if (!narrow) return device::load(x[i / repeat % period]);
      return device::load(x[static_cast<uint32_t>(i) / static_cast<uint32_t>(repeat) % static_cast<uint32_t>(period)]);
    }
  };

  template <class T, int N> struct Body {
    Input<T> in[fused::kMaxInputs];
    T* out[fused::kMaxOutsOnDevices];
    const ElementStep* steps;
    int64_t n, apart;  // distance of a lane's elements
    int32_t inputs, count;
    bool narrow;  // the number of elements fits 32 bits, which a GPU divides faster

    // The last elements of the last lanes may be out of range: those lanes recompute their first elements and discard
    // them.
    AB_HD bool there(int64_t i, int k) const { return N == 1 || i + k * apart < n; }
    AB_HD int64_t place(int64_t i, int k) const { return there(i, k) ? i + k * apart : i; }

    // An output may alias an input: reads all inputs first.
    AB_HD void operator()(int64_t i) const {
      Pack<N> values[fused::kMaxInputs + fused::kMaxKept];
      for (int k = 0; k < inputs; ++k) {
        values[k] = each_of<N>([&](int e) { return in[k].at(place(i, e), narrow); });
      }
      Pack<N> last = {};
      ElementStep step = steps[0], next = steps[count > 1 ? 1 : 0];
      Pack<N> x = values[step.operands[0]], y = values[step.operands[1]];
      for (int s = 0; s < count; ++s) {
        // The next step is loaded while this one is computed.
        const ElementStep after = steps[s + 2 < count ? s + 2 : s];
        const Pack<N> next_x = values[next.operands[0]], next_y = values[next.operands[1]];
        const auto of = [&](int k) { return step.previous >> k & 1 ? last : values[step.operands[k]]; };
        if (step.previous & 1) x = last;
        if (step.previous & 2) y = last;
        const bool is_of_most = step.code <= static_cast<uint8_t>(kLastOfMost);
        last = is_of_most ? result_of_most(step, x, y) : result_of(step, x, y, of);
        if (!step.exact) last = each_of<N>([&](int k) { return device::load(static_cast<T>(last.at[k])); });
        if (step.kept != device::kNowhere) values[step.kept] = last;
        if (step.out != device::kNowhere) leave(last, i, out[step.out]);
        step = next;
        next = after;
        x = next_x;
        y = next_y;
      }
    }

    AB_HD void leave(const Pack<N>& value, int64_t i, T* to) const {
      for (int k = 0; k < N; ++k) {
        if (there(i, k)) device::store(to + i + k * apart, value.at[k]);
      }
    }
  };

  template <class T> static int run(const device::Launch& launch, const Args& a) {
    return a.n < device::kManyElements ? run_by<T, 1>(launch, a) : run_by<T, kSeveral>(launch, a);
  }

  template <class T, int N> static int run_by(const device::Launch& launch, const Args& a) {
    Body<T, N> body = {};
    for (int k = 0; k < a.inputs; ++k) body.in[k] = {a.in[k].x.get<T>(), a.in[k].repeat, a.in[k].period};
    for (int k = 0; k < a.outs; ++k) body.out[k] = a.out[k].get<T>();
    body.steps = a.steps.get<ElementStep>();
    body.n = a.n;
    body.apart = (a.n + N - 1) / N;
    body.inputs = a.inputs;
    body.count = a.count;
    body.narrow = a.n <= 0x7fffffff;
    return device::each(launch, body.apart, body);
  }
};

AB_KERNEL("element_steps", ElementSteps, float, device::half, device::bfloat16);

}  // namespace anabranch::math
